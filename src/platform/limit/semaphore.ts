/** A semaphore: a fixed number of units, some of which work acquires while it runs. */
import { asError, CurlewError } from '../../core/errors.ts';

export interface AcquireOptions {
  /** Number of units, default 1. More than the capacity counts as the capacity. */
  readonly weight?: number | undefined;
  /** Waiting ends with its reason if it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export interface Semaphore {
  /** Waits for the units, first come, first served; lighter requests do not overtake. `BUSY` after waiting too long. */
  readonly acquire: (options?: AcquireOptions) => Promise<void>;
  /** Releases units; as many as were acquired. */
  readonly release: (weight?: number) => void;
  /** Runs `work` while holding the units, and always releases them. */
  readonly run: <Result>(work: () => Promise<Result>, options?: AcquireOptions) => Promise<Result>;
}

interface Waiter {
  readonly weight: number;
  readonly start: () => void;
}

/** With capacity 1 it is a mutex. `patienceMs`: the longest wait; default: no limit. */
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
          new CurlewError(
            'BUSY',
            `no slot was free for ${patienceMs} ms (limit ${capacity}, ${others} others waiting)`,
          ),
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
