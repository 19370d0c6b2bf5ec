/** A fixed number of places for work that many callers want to do, first come first served. */

export interface Lanes {
  /** Runs `work` as soon as a place is free. */
  readonly run: <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;
}

export function createLanes(width: number): Lanes {
  let free = width;
  const waiting: (() => void)[] = [];
  return {
    run: async (work, signal) => {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
