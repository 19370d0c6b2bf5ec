/** A host, a user or a jump host as one argument of ssh: nothing that it takes as an option, as several hosts, or as words of a shell. */
export const SSH_WORD = /^[A-Za-z0-9_:[][A-Za-z0-9_.:%[\]@-]*$/;
