/** Transfers that never stand still and get nowhere: a server that drips would hold a command for ever. */
import type { Sink } from './message.ts';

/** In each stretch of so many milliseconds at least so many bytes must come. */
export interface LeastRate {
  readonly bytes: number;
  readonly ms: number;
}

/** 1000 bytes a second, over a time that outlasts what lines and servers need to recover. dnf's `minrate` is the same. */
export const LEAST_RATE: LeastRate = { bytes: 60_000, ms: 60_000 };

/** `code` of the error for a transfer that is slower. */
export const TOO_SLOW = 'CURLEW_TOO_SLOW';

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
    tooSlow(Object.assign(new Error(`it sent ${got} bytes in ${ms / 1000} s, ${least}`), { code: TOO_SLOW }));
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

interface Watched extends Disposable {
  readonly sink: Sink;
  /** Fires as the given one does, and with `tooSlow()` as its reason. */
  readonly signal: AbortSignal;
  readonly tooSlow: () => Error | undefined;
}

/** The same sink and signal for a body that must come at this rate, from its head on. */
export function watchSink(sink: Sink, rate: LeastRate, signal: AbortSignal): Watched {
  const own = new AbortController();
  let watch: RateWatch | undefined;
  let problem: Error | undefined;
  const cancelled = (): void => {
    own.abort(signal.reason);
  };
  signal.addEventListener('abort', cancelled, { once: true });
  return {
    signal: own.signal,
    tooSlow: () => problem,
    sink: {
      head: (head) => {
        sink.head(head);
        watch ??= watchRate(rate, (error) => {
          problem = error;
          own.abort(error);
        });
      },
      data: (chunk) => {
        watch?.got(chunk.byteLength);
        const writing = sink.data(chunk);
        if (writing === undefined || writing === false || watch === undefined) return writing;
        watch.hold();
        // Whoever reads waits for the same promise, and reports its failure.
        void writing.then(watch.resume, watch.resume);
        return writing;
      },
    },
    [Symbol.dispose]: () => {
      signal.removeEventListener('abort', cancelled);
      watch?.[Symbol.dispose]();
    },
  };
}
