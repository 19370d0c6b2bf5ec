/**
 * The one error that users see, the closed table of its codes, and the rule that keeps secrets out of text.
 */
import type { Diagnostic } from './diagnostic.ts';

/** Every failure that a user can see. The value is the process exit code; 1 is reserved for bugs. */
export const ERROR_CODES = {
  MANIFEST_INVALID: 10,
  SPEC_INVALID: 11,
  FETCH_FAILED: 12,
  AUTH_FAILED: 13,
  NOT_FOUND: 14,
  DIGEST_MISMATCH: 15,
  PACKAGE_INVALID: 16,
  STORE_CONFLICT: 17,
  NO_SPACE: 18,
  BUSY: 19,
  HOOK_FAILED: 20,
  PREFLIGHT_FAILED: 21,
  UNSUPPORTED: 22,
  LOCK_MISMATCH: 23,
  FILE_EXISTS: 24,
  FILE_UNUSABLE: 25,
  IMAGE_LOAD_FAILED: 26,
  IMAGE_INVALID: 27,
  CONTAINER_FAILED: 28,
  PACKAGES_UNRESOLVED: 29,
  SIGNATURE_INVALID: 30,
  PROGRAM_FAILED: 31,
  PLAN_CHANGED: 32,
  CLUSTER_FAILED: 33,
  DOWNGRADE: 34,
  USAGE: 64,
  CANCELLED: 130,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface CurlewErrorOptions {
  /** What to do next, in the imperative. */
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
  return text.replaceAll(ADDRESS, (_, scheme: string, _user, rest: string) => scheme + rest);
}

/** Like {@link redact}, with a `*` for each character, so that columns do not move. For excerpts of source text. */
export function maskSecrets(text: string): string {
  const stars = (secret: string): string => '*'.repeat(secret.length);
  return text.replaceAll(ADDRESS, (_, scheme: string, user: string | undefined, rest: string, query: string) => {
    const who = user === undefined ? '' : `${stars(user)}@`;
    return scheme + who + rest + query.replace(/(?<=^\?)[^#]+/, stars);
  });
}

/** The `code` of a Node system error, or undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Converts any thrown value to an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

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
  const hint =
    errno === 'EROFS'
      ? 'the disk is read-only: remount it writable or use another folder, then run the same command again'
      : undefined;
  return new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${asError(error).message}`, { hint, cause: error });
}
