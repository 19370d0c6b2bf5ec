/** What a failure looks like from outside: what a client can mend is told, what lies behind the server is not. */
import { renderDiagnostic } from '../core/diagnostic.ts';
import { CurlewError, type ErrorCode } from '../core/errors.ts';
import { jsonAnswer, textAnswer, type Answer } from './content.ts';

/** Anything else is a matter of the server: 500. */
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

const BEHIND: Readonly<Record<number, string>> = {
  500: 'the server failed; its log says more',
  502: 'what lies in the store is damaged, or cannot be reached; the log of the server says more',
  503: 'the store has changed meanwhile, or too much is asked for at once: ask again',
};

export function statusOf(error: unknown): number {
  return error instanceof CurlewError ? (STATUS[error.code] ?? 500) : 500;
}

export function failureAnswer(error: unknown): Answer {
  const status = statusOf(error);
  const retry: Readonly<Record<string, string>> = status === 503 ? { 'Retry-After': '1' } : {};
  if (status >= 500 || !(error instanceof CurlewError)) return textAnswer(status, `${BEHIND[status] ?? ''}\n`, retry);
  const lines = [error.message, ...error.diagnostics.map((one) => renderDiagnostic(one, undefined))];
  if (error.hint !== undefined) lines.push(`hint: ${error.hint}`);
  return textAnswer(status, `${lines.join('\n')}\n`);
}

/**
 * What the store promises must be there, and of a kind that is known: whoever asks can mend neither, and is not told where
 * it lies. `asked` says what is the client's matter nevertheless.
 */
export async function ofStore<Result>(
  work: () => Promise<Result>,
  { asked = [] }: { readonly asked?: readonly ErrorCode[] } = {},
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CurlewError) || asked.includes(error.code)) throw error;
    if (error.code !== 'NOT_FOUND' && error.code !== 'UNSUPPORTED') throw error;
    throw new CurlewError('PACKAGE_INVALID', error.message, { cause: error });
  }
}

/** Errors as registries tell them (OCI distribution-spec 1.1, error codes). */
export function registryFailure(status: number, code: string, message: string): Answer {
  return jsonAnswer(status, { errors: [{ code, message }] });
}
