/**
 * The one error that users see, the closed table of its codes, and the rule that keeps secrets out of text.
 */
import type { Diagnostic } from './diagnostic.ts';

interface ErrorRow {
  /** Exit status of the process. 1 is reserved for bugs, 2 for results that ask for another step. */
  readonly status: number;
  /** Why it happens, in one sentence. */
  readonly cause: string;
  /** The cure in general; the hint of an error is more specific. */
  readonly cure: string;
}

/** Every failure that a user can see; `docs/errors.md` and `curlew help CODE` show its texts. */
export const ERRORS = {
  MANIFEST_INVALID: {
    status: 10,
    cause: 'An add-on, a channel or a manifest has mistakes.',
    cure: 'Fix what is listed with file and line. `curlew lint` lists all mistakes of add-ons, `curlew channel check` those of channels.',
  },
  SPEC_INVALID: {
    status: 11,
    cause: 'An installer spec or a file of a fleet has mistakes, or no package satisfies the spec.',
    cure: 'Run `curlew installer validate FILE` or `curlew fleet check FILES…`. `curlew versions --from STORE` lists the available versions.',
  },
  FETCH_FAILED: {
    status: 12,
    cause:
      'A server did not respond, closed the connection, or returned something unexpected, and repeating the request did not help.',
    cure: 'Check the address, the network and the proxy (`HTTPS_PROXY`, `NO_PROXY`), then run the same command again: it continues with what has arrived.',
  },
  AUTH_FAILED: {
    status: 13,
    cause: 'A registry, a store or another server requires credentials, or refuses the given ones.',
    cure: 'Log in with `docker login`, or set the credentials of S3; `curlew doctor` shows which credentials it finds.',
  },
  NOT_FOUND: {
    status: 14,
    cause: 'A file, an add-on, a version, a release, an image or another named thing does not exist.',
    cure: 'Check the name; the hint often has a similar one. `curlew versions --from STORE` lists add-ons and their versions.',
  },
  DIGEST_MISMATCH: {
    status: 15,
    cause: 'Bytes do not have the digest that was recorded for them: a file is damaged or was replaced.',
    cure: 'Fetch, copy or build the file again. If the digest is in a `Manifest`, find out why upstream has changed the file.',
  },
  PACKAGE_INVALID: {
    status: 16,
    cause: 'A file is not a package or bundle that curlew made, is incomplete, or breaks the limits of the format.',
    cure: 'Check that it is the right file and that its transfer is complete: `curlew verify FILE`. Otherwise build it again.',
  },
  STORE_CONFLICT: {
    status: 17,
    cause:
      'Another publisher has changed the store since this command read it, or a release already contains something else.',
    cure: 'Run the same command again. A release never changes: publish different content under a new release string.',
  },
  NO_SPACE: {
    status: 18,
    cause: 'A disk or quota is full, or the plan of a run needs more space than a disk has.',
    cure: 'Free some space, or use another folder (`--install-dir`, `--out`, `--cache`), then run the same command again.',
  },
  BUSY: {
    status: 19,
    cause: 'Another process uses the same files, the same node or the same cluster.',
    cure: 'Wait until it ends. The message names it; a lock of a process that no longer exists does not count.',
  },
  HOOK_FAILED: {
    status: 20,
    cause: 'A bash function of an add-on failed on this node.',
    cure: 'Read the printed output of the hook, or `curlew logs ADDON HOOK`. Fix the cause, then run the same command again, or `curlew resume`: it begins with this hook.',
  },
  PREFLIGHT_FAILED: {
    status: 21,
    cause: 'The machine does not meet the requirements: a host preflight failed, or host packages are missing.',
    cure: 'Fix what is listed. `--ignore TITLE` ignores one check, `--preflights ignore` all of them.',
  },
  UNSUPPORTED: {
    status: 22,
    cause: 'The request is not possible here, or not with this version of curlew.',
    cure: 'The message says what is not supported; the hint names the way that works, if one exists.',
  },
  LOCK_MISMATCH: {
    status: 23,
    cause: 'With `--locked`, a directive resolves to other content than `Manifest.lock` records.',
    cure: '`curlew outdated` shows the differences. `curlew build --update-lock` accepts them.',
  },
  FILE_EXISTS: {
    status: 24,
    cause: 'The output file already exists.',
    cure: 'Remove it, choose another name, or pass `--force` where the command has this option.',
  },
  FILE_UNUSABLE: {
    status: 25,
    cause: 'A file or folder cannot be read or written: its permissions, its kind, its disk, or a damaged content.',
    cure: 'The message has the reason of the operating system. Use another path, or run the command as a user that has access.',
  },
  IMAGE_LOAD_FAILED: {
    status: 26,
    cause: 'The container runtime of a node did not load an image, or no runtime responds.',
    cure: 'Start containerd or Docker, check its disk, then run the same command again. `curlew load-images` loads images alone.',
  },
  IMAGE_INVALID: {
    status: 27,
    cause: 'An image from a registry, an archive or a package is malformed.',
    cure: 'Push or save the image again with the tool that made it.',
  },
  CONTAINER_FAILED: {
    status: 28,
    cause: 'A container that a build runs, such as one of `dockerout`, failed.',
    cure: 'Read the printed output. `curlew doctor` checks the Docker engine.',
  },
  PACKAGES_UNRESOLVED: {
    status: 29,
    cause:
      'Host packages of a Manifest, or packages that they require, are not in the repositories of the operating system.',
    cure: 'Check the names, and that each operating system of the directive has the package.',
  },
  SIGNATURE_INVALID: {
    status: 30,
    cause: 'A signature is missing, or was not made with one of the given keys over these bytes.',
    cure: 'Get the file, its signature and the key again from their publisher. Do not install the file until it verifies.',
  },
  PROGRAM_FAILED: {
    status: 31,
    cause: 'A program that curlew runs failed, such as helm, git or a credential helper.',
    cure: 'The message has the output of the program. Run the program itself to see more.',
  },
  PLAN_CHANGED: {
    status: 32,
    cause: 'Packages, settings, files or the node have changed since the plan was saved.',
    cure: 'The message lists the changes. Save a new plan with `--dry-run --out FILE`, and review it.',
  },
  CLUSTER_FAILED: {
    status: 33,
    cause: 'The API server did not respond, returned an error, or refused an object; or an add-on of a cluster failed.',
    cure: 'Check the kubeconfig with `kubectl get nodes`. For an add-on, `curlew channel status` or `curlew fleet status --why` shows the reason.',
  },
  DOWNGRADE: {
    status: 34,
    cause: 'An older version would replace a newer one, or a signed file is older than one seen before.',
    cure: 'Use the newer file. `--allow-downgrade` permits it.',
  },
  USAGE: {
    status: 64,
    cause: 'A command, an option or a value on the command line is wrong.',
    cure: '`curlew help COMMAND` lists what the command takes.',
  },
  CANCELLED: {
    status: 130,
    cause: 'The command was stopped by Ctrl-C or SIGTERM, or by the answer to a question.',
    cure: 'Run the same command again: it continues where it stopped.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}

/** The exit status of each code. */
export const ERROR_CODES: Readonly<Record<ErrorCode, number>> = Object.fromEntries(
  Object.entries(ERRORS).map(([code, { status }]) => [code, status]),
) as Record<ErrorCode, number>;

export interface CurlewErrorOptions {
  /** The next step, in the imperative. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  /** Findings with their places, if the input is invalid. */
  readonly diagnostics?: readonly Diagnostic[];
}

/**
 * The message names the operation and its object; the hint says what to do next. Any other error that reaches `main` is a
 * bug in this tool.
 */
export class CurlewError extends Error {
  static {
    this.prototype.name = 'CurlewError';
  }
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly diagnostics: readonly Diagnostic[];
  constructor(code: ErrorCode, message: string, options: CurlewErrorOptions = {}) {
    super(redact(message), options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.hint = options.hint === undefined ? undefined : redact(options.hint);
    this.diagnostics = options.diagnostics ?? [];
  }

  /** The same failure in other words: what is not given stays. */
  with({
    message = this.message,
    hint = this.hint,
    cause = this.cause,
  }: CurlewErrorOptions & { readonly message?: string }): CurlewError {
    return new CurlewError(this.code, message, { hint, cause, diagnostics: this.diagnostics });
  }
}

/** An address that was treated as a path has one slash left. */
const SCHEME = String.raw`[a-z][a-z0-9+.-]{0,30}:\/\/|(?:https?|s3):[\\/]+`;
/** Passwords may contain quotes. One with a slash makes the URL invalid, but users pass such URLs. */
const USER_INFO = String.raw`[^\s/?#"]*|[^\s/?#"'<>:@]*:(?!\d{0,5}(?:[\s/?#"'<>]|$))[^\s"'<>]*`;
/** Matches to the end of each address, so that no address is scanned twice. */
const ADDRESS = new RegExp(String.raw`(${SCHEME})(?:(${USER_INFO})@)?([^\s"'<>?#]*)([^\s"'<>]*)`, 'gi');

/** Removes user info and query from every URL in a text: a presigned URL is a secret as a whole. */
export function redact(text: string): string {
  // SCHEME bounds its length: otherwise each position of a long name would be scanned to the end of the name.
  return text.replaceAll(ADDRESS, (_, scheme: string, _user, rest: string, query: string) => {
    // Punctuation at the end is that of the sentence.
    return scheme + rest + (/[:;,]$/.exec(query)?.[0] ?? '');
  });
}

/** Like {@link redact}, with a `*` for each character, so that columns do not move. For excerpts of source text. */
export function maskSecrets(text: string): string {
  const stars = (secret: string): string => '*'.repeat(secret.length);
  return text.replaceAll(ADDRESS, (_, scheme: string, user: string | undefined, rest: string, query: string) => {
    const who = user === undefined ? '' : `${stars(user)}@`;
    return scheme + who + rest + query.replace(/(?<=^\?)[^#]+/, stars);
  });
}

/** Throws the reason of an aborted signal, and anything that is not an error for users: a bug. */
export function requireRefusal(error: unknown, signal: AbortSignal): asserts error is CurlewError {
  signal.throwIfAborted();
  if (!(error instanceof CurlewError)) throw error;
}

/** Creates the errors about one thing, each with what is wrong with it. */
export function errorAbout(
  code: ErrorCode,
  subject: string,
  hint?: string,
): (what: string, cause?: unknown) => CurlewError {
  return (what, cause) => new CurlewError(code, `${subject}: ${what}`, { hint, cause });
}

/** The `code` of a Node system error, or undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Codes of a file operation that failed because nothing is at its path. */
const MISSING = ['ENOENT', 'ENOTDIR'] as const;

/** True if a file operation failed because nothing is at its path. */
export function isMissing(error: unknown): boolean {
  return MISSING.some((code) => errnoOf(error) === code);
}

/** The result of an operation; undefined if it fails with one of these codes, of a {@link CurlewError} or of a system error. */
export async function unless<Found>(
  codes: readonly (ErrorCode | `E${string}`)[],
  operation: Promise<Found>,
): Promise<Found | undefined> {
  return operation.catch((error: unknown) => {
    if (codes.some((code) => errnoOf(error) === code)) return undefined;
    throw error;
  });
}

/** False if an operation fails with one of these codes. */
export async function succeeds(codes: Parameters<typeof unless>[0], operation: Promise<unknown>): Promise<boolean> {
  const done = operation.then(() => true);
  return (await unless(codes, done)) ?? false;
}

/** The result of an operation; undefined if nothing is at its path. */
export async function unlessMissing<Found>(operation: Promise<Found>): Promise<Found | undefined> {
  return unless(MISSING, operation);
}

/** The result of a file operation; undefined if nothing is at its path. Throws {@link fileError} if it fails otherwise. */
export async function ifExists<Found>(doing: string, operation: Promise<Found>): Promise<Found | undefined> {
  return unlessMissing(operation).catch((error: unknown) => {
    throw fileError(doing, error);
  });
}

/** The hint for a path at which nothing is, in a text: `otherwise`, unless it is an address, with what to do then. */
export function pathHint(text: string, otherwise: string, then = 'download it first'): string {
  const isAddress = new RegExp(String.raw`(?:^|[\s/])(?:${SCHEME})`, 'i').test(text);
  return isAddress ? `it is an address, and a file is expected: ${then}` : otherwise;
}

/** A text with the path that `resolve` has made of an address: the address as it was given, with both slashes and no folder before it. */
export function withAddress(text: string): string {
  return text.replace(/(^|\w )\/(?:.*?\/)??((?:https?|s3):)\/(?!\/)/i, '$1$2//');
}

/** Nothing is at a path that a user gave; `doing` includes it. */
export function noSuchFile(doing: string, cause?: unknown): CurlewError {
  return new CurlewError('NOT_FOUND', `cannot ${withAddress(doing)}: no such file`, {
    hint: pathHint(doing, 'check the path'),
    cause,
  });
}

/** Converts any thrown value to an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** What canceled work has left that only reads, or writes whole files or objects. */
export const NOTHING_WRITTEN = 'nothing was written';

/**
 * The error that ends work that has failed: once the signal has aborted, `CANCELLED` with a hint that says what is left and how to continue, unless
 * a part of it has already said so.
 */
export function canceledOr(error: unknown, signal: AbortSignal, hint: string): Error {
  const isSaid =
    error instanceof CurlewError &&
    error.code === 'CANCELLED' &&
    (error.hint !== undefined || error.message.endsWith(NOTHING_WRITTEN));
  if (!signal.aborted || isSaid) return asError(error);
  if (hint === NOTHING_WRITTEN) return new CurlewError('CANCELLED', `canceled; ${hint}`, { cause: error });
  return new CurlewError('CANCELLED', 'canceled', { hint, cause: error });
}

const DENIED = 'check its owner and permissions, run the same command as another user, or use another path';

const TOO_MANY = 'raise the limit of open files (ulimit -n), then run the same command again';

const FILE_HINTS: ReadonlyMap<string, string> = new Map([
  ['EACCES', DENIED],
  ['EPERM', DENIED],
  ['ENOTDIR', 'a part of the path is a file and not a folder: check the path'],
  ['ENAMETOOLONG', 'the path or a name in it is too long: use a shorter one'],
  ['ELOOP', 'symbolic links in the path lead to each other: use another path'],
  ['EROFS', 'the disk is read-only: remount it writable or use another folder, then run the same command again'],
  ['EFBIG', 'a limit of file sizes is reached: raise it (ulimit -f), or use a file system that holds larger files'],
  ['EIO', 'the disk fails: see dmesg, and use another one'],
  ['EMFILE', TOO_MANY],
  ['ENFILE', TOO_MANY],
]);

/**
 * Converts a failed file operation: `NO_SPACE` for a full disk or quota, `FILE_UNUSABLE` otherwise. A CurlewError is
 * returned unchanged.
 */
export function fileError(doing: string, error: unknown): CurlewError {
  if (error instanceof CurlewError) return error;
  const errno = errnoOf(error);
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new CurlewError('NO_SPACE', `cannot ${doing}: no space left`, {
      hint: 'free some space or use another folder, then run the same command again',
      cause: error,
    });
  }
  if (errno === 'EISDIR') {
    return new CurlewError('FILE_UNUSABLE', `cannot ${doing}: it is a folder`, { hint: 'specify a file' });
  }
  const hint = errno === undefined ? undefined : FILE_HINTS.get(errno);
  return new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${asError(error).message}`, { hint, cause: error });
}

/** Rethrows an error of a call on an open file with the file's path, which Node leaves out: `file.stat().catch(atPath(path))`. */
export function atPath(path: string): (error: unknown) => never {
  return (error) => {
    throw errnoOf(error) === undefined ? error : Object.assign(asError(error), { path });
  };
}

/**
 * A system call that failed by the state of the machine, such as a full disk, as {@link fileError}; any other value unchanged. For errors
 * of calls that no message describes: with `ENOENT` or `EEXIST` they may well be mistakes of the code. If what an error left behind
 * could not be closed or removed, the error itself counts.
 */
export function machineError(error: unknown): unknown {
  if (error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error)
    return machineError(error.suppressed);
  const errno = errnoOf(error);
  if (errno === undefined || !(error instanceof Error) || !('syscall' in error)) return error;
  if (!FILE_HINTS.has(errno) && errno !== 'ENOSPC' && errno !== 'EDQUOT') return error;
  const path = 'path' in error && typeof error.path === 'string' ? ` ${error.path}` : '';
  return fileError(`${String(error.syscall)}${path}`, error);
}
