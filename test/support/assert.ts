/** Assertions: uvu's, and those it lacks. */
import { CurlewError, type ErrorCode } from '../../src/core/errors.ts';

export { equal, instance, is, match, not, ok, unreachable } from 'uvu/assert';

/** The promise must reject with a CurlewError of this code whose message matches; the error is handed back. */
export async function rejectsWith(
  promise: Promise<unknown>,
  code: ErrorCode,
  message: RegExp = /(?:)/,
): Promise<CurlewError> {
  let result: unknown;
  try {
    result = await promise;
  } catch (error) {
    return checked(error, code, message);
  }
  throw new Error(`expected ${code}, but it resolved with ${JSON.stringify(result)}`);
}

/** The function must throw a CurlewError of this code whose message matches; the error is handed back. */
export function throwsWith(body: () => unknown, code: ErrorCode, message: RegExp = /(?:)/): CurlewError {
  try {
    body();
  } catch (error) {
    return checked(error, code, message);
  }
  throw new Error(`expected ${code}, but nothing was thrown`);
}

function checked(error: unknown, code: ErrorCode, message: RegExp): CurlewError {
  if (!(error instanceof CurlewError)) throw error;
  if (error.code !== code) throw new Error(`expected ${code}, got ${error.code}: ${error.message}`, { cause: error });
  if (!message.test(error.message)) {
    throw new Error(`expected a message like ${String(message)}, got: ${error.message}`, { cause: error });
  }
  return error;
}
