/** How often each part of a program runs, as the engine counts it: a loop that hides in a loop is seen without a clock. */
import { Session } from 'node:inspector/promises';

export interface Executions extends AsyncDisposable {
  /** Executions of each block under `src/` since the last time, by its place. */
  readonly take: () => Promise<ReadonlyMap<string, number>>;
}

/** To be called before what is counted runs for the first time: what the engine has optimized before is not counted well. */
export async function countExecutions(): Promise<Executions> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    take: async () => {
      const { result } = await session.post('Profiler.takePreciseCoverage');
      const counts = new Map<string, number>();
      for (const { url, functions } of result) {
        const [, file] = url.split('?')[0]?.split('/src/') ?? [];
        if (file === undefined) continue;
        for (const { functionName, ranges } of functions) {
          for (const { startOffset, endOffset, count } of ranges) {
            const place = `src/${file} ${functionName}:${startOffset}-${endOffset}`;
            // A function, and the block around it, may have the same place.
            counts.set(place, Math.max(counts.get(place) ?? 0, count));
          }
        }
      }
      return counts;
    },
    [Symbol.asyncDispose]: async () => {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}
