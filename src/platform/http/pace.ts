/** Minimum transfer rates: a body that stalls or trickles would block a command forever. */
import type { Readable } from 'node:stream';

/** At least `bytes` must arrive in each interval of `ms` milliseconds. */
export interface MinRate {
  readonly bytes: number;
  readonly ms: number;
}

/** `code` of the error for a body that stalls or is too slow. */
export const STALLED = 'CURLEW_STALLED';

/** Samples per interval of whether the reader waits for bytes. */
const SAMPLES = 10;

interface RateWatch extends Disposable {
  readonly got: (bytes: number) => void;
  /** Stops the clock while the consumer processes bytes. */
  readonly hold: () => void;
  readonly resume: () => void;
}

/** Calls `tooSlow` at most once. Counts samples instead of time, so that suspending the process does not count. */
export function watchRate({ bytes, ms }: MinRate, tooSlow: (error: Error) => void): RateWatch {
  let [got, samples, held] = [0, 0, false];
  const sample = (): void => {
    if (held) return;
    samples += 1;
    if (samples < SAMPLES) return;
    if (got >= bytes) {
      [got, samples] = [0, 0];
      return;
    }
    clearInterval(timer);
    const least = `at least ${Math.ceil(bytes / (ms / 1000))} bytes per second are required`;
    tooSlow(Object.assign(new Error(`the server sent ${got} bytes in ${ms / 1000} s, ${least}`), { code: STALLED }));
  };
  const timer = setInterval(sample, Math.max(1, ms / SAMPLES));
  return {
    got: (size) => {
      got += size;
    },
    hold: () => {
      held = true;
    },
    resume: () => {
      held = false;
    },
    [Symbol.dispose]: () => {
      clearInterval(timer);
    },
  };
}

export interface Pace {
  /** Longest time between two chunks, in milliseconds. */
  readonly idleMs: number;
  readonly minRate: MinRate;
}

/**
 * The chunks of a body, which must arrive at this pace; the clock stops while the consumer processes a chunk. Throws an error
 * with the code {@link STALLED} if the body is too slow, and the body's own errors. Closes the body at the end.
 */
export async function* paced(body: Readable, { idleMs, minRate }: Pace): AsyncGenerator<Uint8Array, void, undefined> {
  using watch = watchRate(minRate, (error) => body.destroy(error));
  const parts = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const stalled = (): void => {
    const message = `the transfer stalled (no data for ${idleMs / 1000} seconds)`;
    body.destroy(Object.assign(new Error(message), { code: STALLED }));
  };
  try {
    for (;;) {
      const timer = setTimeout(stalled, idleMs);
      let next: IteratorResult<Uint8Array>;
      try {
        next = await parts.next();
      } finally {
        clearTimeout(timer);
      }
      if (next.done === true) return;
      watch.got(next.value.byteLength);
      watch.hold();
      yield next.value;
      watch.resume();
    }
  } finally {
    body.destroy();
  }
}
