/** A time limit for work that may hang. */
import { asError } from '../../core/errors.ts';

export class LimitExceeded extends Error {
  /** Milliseconds. */
  readonly limit: number;
  constructor(limit: number) {
    super('limit exceeded');
    this.limit = limit;
  }
}

/** Throws {@link LimitExceeded} after so many milliseconds. Work that then ignores its signal is abandoned. */
export async function within<Result>(
  limit: number,
  work: (at: { readonly signal: AbortSignal }) => Promise<Result>,
  { signal }: { readonly signal: AbortSignal },
): Promise<Result> {
  signal.throwIfAborted();
  const late = new AbortController();
  const both = AbortSignal.any([signal, late.signal]);
  const aborted = new Promise<never>((_, reject) => {
    both.addEventListener('abort', () => reject(asError(both.reason)), { once: true });
  });
  using _timer = setTimeout(() => late.abort(new LimitExceeded(limit)), limit);
  try {
    return await Promise.race([work({ signal: both }), aborted]);
  } catch (error) {
    // Work says in its own words that it was aborted.
    throw !signal.aborted && late.signal.aborted ? late.signal.reason : error;
  }
}
