/** When to ask again, and how long to wait before. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ResponseHead } from './message.ts';

export interface RetryPolicy {
  /** Requests in all before giving up, as long as nothing moves. */
  readonly attempts: number;
  /** The first pause; it doubles each time, with up to as much again by chance. */
  readonly baseMs: number;
  /** No pause is longer, whatever a server asks for. */
  readonly capMs: number;
}

export const RETRY_POLICY: RetryPolicy = { attempts: 5, baseMs: 250, capMs: 60_000 };

const RETRYABLE: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** Statuses that mean "later" rather than "no". */
export function isRetryable(status: number): boolean {
  return RETRYABLE.has(status);
}

/** Milliseconds of a Retry-After header (seconds, or a date), or undefined when there is none that can be read. */
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
  const asked = retryAfterMs(head?.headers['retry-after'], now);
  const backOff = baseMs * 2 ** Math.min(attempt - 1, 20) * (1 + Math.random());
  return Math.min(capMs, asked ?? backOff);
}

/** Waits; the signal's reason is thrown when it fires. */
export async function pause(ms: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
