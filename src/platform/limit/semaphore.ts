/** A semaphore: a fixed number of units, of which work takes some while it runs. */
import { asError, CurlewError } from '../../core/errors.ts';

export interface AcquireOptions {
  /** Units: 1 when left out. More than there are count as all of them. */
  readonly weight?: number | undefined;
  /** Whoever waits leaves with its reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Semaphore {
  /** Waits for the units, first come first served; a heavy one is not overtaken. `BUSY` when it has waited too long. */
  readonly acquire: (options?: AcquireOptions) => Promise<void>;
  /** Gives units back; as many as were acquired. */
  readonly release: (weight?: number) => void;
  /** Runs `work` while it holds the units, which are given back however it ends. */
  readonly run: <Result>(work: () => Promise<Result>, options?: AcquireOptions) => Promise<Result>;
}

interface Waiter {
  readonly weight: number;
  readonly start: () => void;
}

/** One of capacity 1 is a mutex. `patienceMs`: the longest wait; no limit when left out. */
export function createSemaphore(
  capacity: number,
  { patienceMs }: { readonly patienceMs?: number | undefined } = {},
): Semaphore {
  const queue = new Set<Waiter>();
  let free = capacity;
  const startNext = (): void => {
    for (const waiter of queue) {
      if (waiter.weight > free) return;
      queue.delete(waiter);
      free -= waiter.weight;
      waiter.start();
    }
  };
  const wait = async (weight: number, signal: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const leave = (error: Error): void => {
        queue.delete(waiter);
        settle();
        reject(error);
        startNext();
      };
      const abort = (): void => leave(asError(signal?.reason));
      const giveUp = (): void => {
        const others = queue.size - 1;
        leave(
          new CurlewError('BUSY', `no place was free for ${patienceMs} ms: ${capacity} run, ${others} others wait`),
        );
      };
      const late = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
      const settle = (): void => {
        clearTimeout(late);
        signal?.removeEventListener('abort', abort);
      };
      const start = (): void => {
        settle();
        resolve();
      };
      const waiter: Waiter = { weight, start };
      queue.add(waiter);
      signal?.addEventListener('abort', abort, { once: true });
    });
  const unitsOf = (weight = 1): number => Math.min(weight, capacity);
  const acquire: Semaphore['acquire'] = async ({ weight, signal } = {}) => {
    signal?.throwIfAborted();
    const units = unitsOf(weight);
    if (queue.size > 0 || units > free) return wait(units, signal);
    free -= units;
  };
  const release: Semaphore['release'] = (weight) => {
    free += unitsOf(weight);
    startNext();
  };
  return {
    acquire,
    release,
    run: async (work, options = {}) => {
      await acquire(options);
      try {
        options.signal?.throwIfAborted();
        return await work();
      } finally {
        release(options.weight);
      }
    },
  };
}
