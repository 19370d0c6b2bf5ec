/** The pace at which a body has to come: one that stands still, or drips for ever, would hold a command for as long. */
import type { Readable } from 'node:stream';

/** In each stretch of so many milliseconds at least so many bytes must come. */
export interface LeastRate {
  readonly bytes: number;
  readonly ms: number;
}

/** 1000 bytes a second, over a time that outlasts what lines and servers need to recover. dnf's `minrate` is the same. */
export const LEAST_RATE: LeastRate = { bytes: 60_000, ms: 60_000 };

/** `code` of the error for a body that stands still, or comes too slowly. */
export const STALLED = 'CURLEW_STALLED';

/** How often in that time it is looked whether the reader waits for bytes. */
const LOOKS = 10;

interface RateWatch extends Disposable {
  readonly got: (bytes: number) => void;
  /** Whoever takes the bytes has the turn: time stands still. */
  readonly hold: () => void;
  readonly resume: () => void;
}

/** Calls `tooSlow` at most once. Looks are counted, not time: a process that was stopped meanwhile blames nobody. */
export function watchRate({ bytes, ms }: LeastRate, tooSlow: (error: Error) => void): RateWatch {
  let [got, looks, held] = [0, 0, false];
  const look = (): void => {
    if (held) return;
    looks += 1;
    if (looks < LOOKS) return;
    if (got >= bytes) {
      [got, looks] = [0, 0];
      return;
    }
    clearInterval(timer);
    const least = `at least ${Math.ceil(bytes / (ms / 1000))} bytes a second are needed`;
    tooSlow(Object.assign(new Error(`it sent ${got} bytes in ${ms / 1000} s, ${least}`), { code: STALLED }));
  };
  const timer = setInterval(look, Math.max(1, ms / LOOKS));
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
  /** Milliseconds between two parts. */
  readonly idleMs: number;
  readonly leastRate: LeastRate;
}

/**
 * The parts of a body that comes at this pace; time stands still while whoever takes them has the turn. Throws an error with the
 * code {@link STALLED} otherwise, and the body's own. The body is closed at the end.
 */
export async function* paced(body: Readable, { idleMs, leastRate }: Pace): AsyncGenerator<Uint8Array, void, undefined> {
  using watch = watchRate(leastRate, (error) => body.destroy(error));
  const parts = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const stalled = (): void => {
    const message = `the transfer stood still (no byte came for ${idleMs / 1000} seconds)`;
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
