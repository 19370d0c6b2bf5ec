/** Fallback between several places that have the same object. */
import { CurlewError, type ErrorCode } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import type { Store } from './store.ts';

/** A store and a key from which a file can be fetched. */
export interface FetchPlace {
  readonly store: Store;
  readonly key: string;
}

/** Errors of one place that another place may not have. */
const PLACE_ERRORS: readonly ErrorCode[] = [
  'FETCH_FAILED',
  'AUTH_FAILED',
  'NOT_FOUND',
  'DIGEST_MISMATCH',
  'STORE_CONFLICT',
  'PACKAGE_INVALID',
  'UNSUPPORTED',
  'SIGNATURE_INVALID',
];

/** True for a failure of one place that implies nothing about the others. */
export function isPlaceError(error: unknown): error is CurlewError {
  return error instanceof CurlewError && PLACE_ERRORS.includes(error.code);
}

/**
 * Runs `work` with one place after the other until it succeeds. Reports each failure. If all places fail, throws the last
 * error with the messages of all.
 */
export async function tryPlaces<Place, Result>(
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
      if (!isPlaceError(error)) throw error;
      failures.push(error);
      if (failures.length === places.length) break;
      report({ type: 'note', level: 'warning', text: `${error.message}; trying the next place` });
    }
  }
  throw allFailed(failures);
}

/** The last error, with the messages of all. */
export function allFailed(failures: readonly CurlewError[]): Error {
  const last = failures.at(-1);
  if (last === undefined) return new Error('no place to fetch from');
  if (failures.length === 1) return last;
  const message = failures.map((failure) => failure.message).join('; ');
  return new CurlewError(last.code, message, { hint: last.hint, cause: last });
}
