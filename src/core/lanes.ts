/** A fixed number of places for work that many callers want to do, first come first served. */
import { asError, CurlewError } from './errors.ts';

export interface Lanes {
  /**
   * Runs `work` as soon as a place is free; work whose signal fires before does not begin. `BUSY` when as many wait as may.
   */
  readonly run: <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;
}

export function createLanes(
  width: number,
  { waiting = Number.POSITIVE_INFINITY }: { readonly waiting?: number } = {},
): Lanes {
  const queue = new Set<() => void>();
  let free = width;
  const place = async (signal: AbortSignal): Promise<void> => {
    if (free > 0) {
      free -= 1;
      return;
    }
    if (queue.size >= waiting) throw new CurlewError('BUSY', `${width} run and ${queue.size} wait already`);
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        queue.delete(go);
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        queue.delete(go);
        reject(asError(signal.reason));
      };
      queue.add(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  };
  return {
    run: async (work, signal) => {
      signal.throwIfAborted();
      await place(signal);
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        const [next] = queue;
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
