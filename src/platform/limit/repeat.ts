/** Waiting, and repeating what has not succeeded yet. */
import { setTimeout as delay } from 'node:timers/promises';

/** Waits; throws the signal's reason if it aborts. */
export async function pause(ms: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

export interface Pauses {
  readonly firstMs: number;
  /** Each pause is twice the one before, up to this; default: all are equal. */
  readonly maxMs?: number;
  /** After this time, what was found last is returned. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** Calls `attempt` until what it returns `isDone`, or the time is over; the last call is at its end. Returns what that returned. */
export async function repeatUntil<Found>(
  attempt: () => Promise<Found>,
  isDone: (result: Found) => boolean,
  { firstMs, maxMs = firstMs, limitMs, signal }: Pauses,
): Promise<Found> {
  const until = performance.now() + limitMs;
  for (let waitMs = firstMs; ; waitMs = Math.min(waitMs * 2, maxMs)) {
    const result = await attempt();
    const leftMs = until - performance.now();
    if (isDone(result) || leftMs <= 0) return result;
    await pause(Math.min(waitMs, leftMs), { signal });
  }
}
