/** When to retry, and how long to wait first. */
import { CurlewError } from '../../core/errors.ts';
import type { HttpRequest, ResponseHead } from './message.ts';

export interface RetryPolicy {
  /** Maximum number of requests without progress. */
  readonly attempts: number;
  /** The first pause; it doubles each time, plus up to 100 % random jitter. */
  readonly baseMs: number;
  /** Longest pause, even if a server requests more. */
  readonly capMs: number;
}

/** The longest wait that a server may request: a command that pauses longer looks as if it hangs. */
const MAX_WAIT_MS = 60_000;
export const RETRY_POLICY: RetryPolicy = { attempts: 5, baseMs: 250, capMs: MAX_WAIT_MS };

const SLOW_HINT = 'the server or the network is too slow: run the same command again later, or use another server';
/** Server errors that a retry cannot change: not implemented, HTTP version not supported. */
const PERMANENT: ReadonlySet<number> = new Set([501, 505]);

/** Statuses that mean "later" rather than "no"; CDNs have their own above 511. */
export function isRetryable(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status <= 599 && !PERMANENT.has(status));
}

/** The wait that a server requests, in milliseconds, if it is too long to wait for. */
export function refusedWaitMs({ status, headers }: ResponseHead, now: number): number | undefined {
  const requested = isRetryable(status) ? retryAfterMs(headers['retry-after'], now) : undefined;
  return requested !== undefined && requested > MAX_WAIT_MS ? requested : undefined;
}

/** True if the same request may succeed after a short pause. */
export function isWorthRetry(head: ResponseHead): boolean {
  return isRetryable(head.status) && refusedWaitMs(head, Date.now()) === undefined;
}

/** Milliseconds of a Retry-After header (seconds, or a date), or undefined if it is absent or invalid. */
export function retryAfterMs(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1000;
  // Date.parse takes nearly anything; an HTTP date begins with the name of a day.
  const date = /^\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** The pause before attempt number `attempt` (counted from 1 after the first failure). */
export function pauseMs(
  attempt: number,
  head: ResponseHead | undefined,
  { baseMs, capMs }: RetryPolicy,
  now: number,
): number {
  const requested = retryAfterMs(head?.headers['retry-after'], now);
  const backOff = baseMs * 2 ** Math.min(attempt - 1, 20) * (1 + Math.random());
  return Math.min(capMs, requested ?? backOff);
}

/** Cancels the work after `ms`. There is no retry after that: it would take as long. */
export async function withinTime<Result>(
  { doing, url }: HttpRequest,
  { ms, signal, received }: { readonly ms: number; readonly signal: AbortSignal; readonly received: () => number },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const own = new AbortController();
  const canceled = (): void => {
    own.abort(signal.reason);
  };
  const timer = setTimeout(() => {
    const { host } = new URL(url);
    const message = `cannot ${doing}: ${host}: the response was not complete after ${ms / 1000} s (${received()} bytes received)`;
    own.abort(new CurlewError('FETCH_FAILED', message, { hint: SLOW_HINT }));
  }, ms);
  signal.throwIfAborted();
  signal.addEventListener('abort', canceled, { once: true });
  try {
    return await work(own.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', canceled);
  }
}
