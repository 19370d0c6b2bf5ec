/** Several places that have the same object: who fails, and whether another may do better. */
import { CurlewError, type ErrorCode } from '../core/errors.ts';
import type { Report } from '../core/events.ts';
import type { Store } from './store.ts';

/** Where a file can be had. */
export interface FetchPlace {
  readonly store: Store;
  readonly key: string;
}

/** With these another place may do better. */
const ELSEWHERE: readonly ErrorCode[] = [
  'FETCH_FAILED',
  'AUTH_FAILED',
  'NOT_FOUND',
  'DIGEST_MISMATCH',
  'STORE_CONFLICT',
  'PACKAGE_INVALID',
  'UNSUPPORTED',
  'SIGNATURE_INVALID',
];

/** True for a failure of one place that says nothing about the others. */
export function isOfPlace(error: unknown): error is CurlewError {
  return error instanceof CurlewError && ELSEWHERE.includes(error.code);
}

/**
 * Runs `work` with one place after the other until it succeeds; each that fails is told, and the last failure is thrown
 * with what the others said.
 */
export async function atOnePlace<Place, Result>(
  places: readonly Place[],
  work: (place: Place) => Promise<Result>,
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<Result> {
  const failures: CurlewError[] = [];
  for (const place of places) {
    try {
      return await work(place);
    } catch (error) {
      signal.throwIfAborted();
      if (!isOfPlace(error)) throw error;
      failures.push(error);
      if (failures.length === places.length) break;
      report({ type: 'note', level: 'warning', text: `${error.message}; the next place is asked` });
    }
  }
  throw allFailed(failures);
}

/** The last failure, with what the others said. */
export function allFailed(failures: readonly CurlewError[]): Error {
  const last = failures.at(-1);
  if (last === undefined) return new Error('no place to fetch from');
  if (failures.length === 1) return last;
  const message = failures.map((failure) => failure.message).join('; ');
  return new CurlewError(last.code, message, { hint: last.hint, cause: last });
}
