/** The key of a host: its fingerprint, or its type and the key itself. */
export const HOST_KEY = /^(?:SHA256:[A-Za-z0-9+/]{43}|(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/]+=*)$/;

/** A host, a user or a jump host as one argument of ssh: nothing that it takes as an option, as several hosts, or as words of a shell. */
export const SSH_WORD = /^[A-Za-z0-9_:[][A-Za-z0-9_.:%[\]@-]*$/;
