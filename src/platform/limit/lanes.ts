/** A fixed number of places for work that many callers want to do, first come first served. */
import { asError, CurlewError } from '../../core/errors.ts';

export interface Lanes {
  /**
   * Runs `work` as soon as a place is free; work whose signal fires before does not begin. `BUSY` when none is free in time.
   */
  readonly run: <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;
}

export function createLanes(width: number, { patienceMs }: { readonly patienceMs?: number | undefined } = {}): Lanes {
  const queue = new Set<() => void>();
  let free = width;
  const place = async (signal: AbortSignal): Promise<void> => {
    if (free > 0) {
      free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const settle = (): void => {
        queue.delete(go);
        clearTimeout(late);
        signal.removeEventListener('abort', leave);
      };
      const go = (): void => {
        settle();
        resolve();
      };
      const leave = (): void => {
        settle();
        reject(asError(signal.reason));
      };
      const giveUp = (): void => {
        settle();
        reject(
          new CurlewError('BUSY', `no place was free for ${patienceMs} ms: ${width} run, ${queue.size} others wait`),
        );
      };
      const late = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
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
