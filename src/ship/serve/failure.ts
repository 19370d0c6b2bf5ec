/** Converts errors to responses: reports what a client can fix, and hides details of the server and its store. */
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { CurlewError, type ErrorCode } from '../../core/errors.ts';
import { ARCHES, type Arch } from '../../core/ref.ts';
import { askingFor } from '../bundle/resolve.ts';
import { jsonAnswer, textAnswer, type Answer } from './content.ts';

/** All other codes are server errors: 500. */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  NOT_FOUND: 404,
  SPEC_INVALID: 422,
  UNSUPPORTED: 422,
  USAGE: 400,
  FILE_EXISTS: 409,
  STORE_CONFLICT: 503,
  BUSY: 503,
  FETCH_FAILED: 502,
  AUTH_FAILED: 502,
  DIGEST_MISMATCH: 502,
  PACKAGE_INVALID: 502,
  IMAGE_INVALID: 502,
  SIGNATURE_INVALID: 502,
};

const SERVER_ERRORS: Readonly<Record<number, string>> = {
  500: 'the server failed; see its log',
  502: 'the store is damaged or unreachable; see the server log',
  503: 'the store has changed, or the server is busy: try again',
};

const NOT_READABLE = 'the store has what this server does not support: it may need a newer curlew; see the server log';

function isUnsupported(error: unknown): boolean {
  return error instanceof CurlewError && error.code === 'UNSUPPORTED';
}

export function statusOf(error: unknown): number {
  return error instanceof CurlewError ? (STATUS[error.code] ?? 500) : 500;
}

export function failureAnswer(error: unknown): Answer {
  const status = statusOf(error);
  if (error instanceof CurlewError && isUnsupported(error.cause)) return textAnswer(status, `${NOT_READABLE}\n`);
  const retry: Readonly<Record<string, string>> = status === 503 ? { 'Retry-After': '1' } : {};
  if (status >= 500 || !(error instanceof CurlewError))
    return textAnswer(status, `${SERVER_ERRORS[status] ?? ''}\n`, retry);
  const lines = [error.message, ...error.diagnostics.map((one) => renderDiagnostic(one, undefined))];
  if (error.hint !== undefined) lines.push(`hint: ${error.hint}`);
  return textAnswer(status, `${forClients(lines.join('\n'))}\n`);
}

/** A text with hints for clients, which have an address and no command line. */
export function forClients(text: string): string {
  const way = (arch: Arch): string =>
    `write arch=${arch} into the query of the address, or _arch=${arch} where it chooses add-ons`;
  return ARCHES.reduce((told, arch) => told.replaceAll(askingFor(arch), way(arch)), text);
}

/**
 * Converts `NOT_FOUND` and `UNSUPPORTED` errors of the store to server errors, since the client cannot fix them and must not
 * learn paths in the store. `except` lists codes that are the client's error.
 */
export async function asServerError<Result>(
  work: () => Promise<Result>,
  { except = [] }: { readonly except?: readonly ErrorCode[] } = {},
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CurlewError) || except.includes(error.code)) throw error;
    if (error.code !== 'NOT_FOUND' && error.code !== 'UNSUPPORTED') throw error;
    throw new CurlewError('PACKAGE_INVALID', error.message, { hint: error.hint, cause: error });
  }
}

/** An error in the format of registries (OCI distribution-spec 1.1, error codes). */
export function registryFailure(status: number, code: string, message: string): ReturnType<typeof jsonAnswer> {
  return jsonAnswer(status, { errors: [{ code, message }] });
}

/** A failure in plain text in the format of registries; every other answer unchanged. */
export function inRegistryFormat(answer: Answer): Answer {
  if (answer.kind === 'content' || answer.status < 400 || !answer.type.startsWith('text/plain')) return answer;
  const { status, text, headers = {} } = answer;
  const code =
    status >= 500 ? (status === 503 ? 'UNAVAILABLE' : 'UNKNOWN') : status === 400 ? 'NAME_INVALID' : 'UNSUPPORTED';
  return { ...registryFailure(status, code, text.trimEnd()), headers };
}
