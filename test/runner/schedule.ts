/** The order in which jobs run next to each other. */
import { setTimeout as wait } from 'node:timers/promises';

export interface Job {
  /** Path of a test file, or the title of a step. */
  readonly name: string;
  /** The command that runs it by itself. */
  readonly command: string;
  /** What the test needs the machine to itself for; undefined where others may run beside it. */
  readonly alone: string | undefined;
  /** What its group takes is long, as far as nothing is known of it. */
  readonly isLong: boolean;
  /** Name of a job that must have succeeded before. */
  readonly after: string | undefined;
  readonly run: (signal: AbortSignal) => Promise<Result>;
}

export interface Result {
  readonly passed: number;
  readonly failed: number;
  /** Reason by test that could not run. */
  readonly skipped: readonly string[];
  readonly output: string;
  readonly seconds: number;
  /** Processor seconds of it and of what it waited for; undefined where nothing says so. */
  readonly cpu?: number;
}

/** Seconds by name of a job, of the last run in which it succeeded. */
export type Times = Readonly<Record<string, number>>;

/**
 * The longest first, so that none of them is left over at the end; those that nothing is known of before all others, and
 * those that need the machine to themselves after them.
 */
export function inOrder(jobs: readonly Job[], times: Times): readonly Job[] {
  const weight = ({ name }: Job): number => times[name] ?? Number.POSITIVE_INFINITY;
  return jobs.toSorted(
    (a, b) =>
      Number(a.alone !== undefined) - Number(b.alone !== undefined) ||
      compare(weight(b), weight(a)) ||
      Number(b.isLong) - Number(a.isLong) ||
      compare(a.name, b.name),
  );
}

function compare<T extends number | string>(a: T, b: T): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Seconds that the jobs still take, `width` at a time, or undefined where most of them have never run. */
export function timeLeft(jobs: readonly Job[], times: Times, width: number): number | undefined {
  const known = jobs.flatMap(({ name }) => times[name] ?? []);
  if (known.length * 2 < jobs.length) return undefined;
  const sum = known.reduce((total, seconds) => total + seconds, 0);
  return ((sum / Math.max(known.length, 1)) * jobs.length) / width;
}

/** Jobs above the width: many only wait, for timers and for other processes. */
export interface Spare {
  /** Jobs at a time, with those of the width. */
  readonly most: number;
  /** Whether the machine has had room for one more job since this was last asked. */
  readonly hasRoom: () => boolean;
  readonly everyMs: number;
}

/**
 * Runs jobs in the order given, `width` at a time and more where there is room, and calls `done` after each. A job whose predecessor
 * failed is not run and counts as a failure. Resolves when all have ended, or when the signal is aborted and those that ran have ended.
 */
export async function runJobs(
  jobs: readonly Job[],
  done: (job: Job, result: Result, waiting: readonly Job[]) => void,
  {
    width,
    spare,
    signal,
  }: { readonly width: number; readonly spare?: Spare | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const waiting = [...jobs];
  const running = new Map<Job, Promise<void>>();
  const succeeded = new Set<string>();
  const isPending = (name: string): boolean =>
    waiting.some((job) => job.name === name) || [...running.keys()].some((job) => job.name === name);
  const finish = (job: Job, result: Result): void => {
    if (result.failed === 0) succeeded.add(job.name);
    if (!signal.aborted) done(job, result, [...running.keys(), ...waiting]);
  };
  const next = (): Job | undefined => {
    if ([...running.keys()].some(({ alone }) => alone !== undefined)) return undefined;
    return waiting.find(
      ({ alone, after }) => (alone === undefined || running.size === 0) && (after === undefined || !isPending(after)),
    );
  };
  while (!signal.aborted && (waiting.length > 0 || running.size > 0)) {
    const further = running.size < Math.max(width, spare?.most ?? 0) ? next() : undefined;
    const isAbove = further !== undefined && running.size >= width;
    const job = isAbove && spare?.hasRoom() !== true ? undefined : further;
    if (job === undefined) {
      if (running.size === 0)
        throw new Error(`jobs wait for each other: ${waiting.map(({ name }) => name).join(', ')}`);
      const ended: readonly Promise<void>[] = [...running.values()];
      const looks =
        spare !== undefined && further !== undefined ? [wait(spare.everyMs, undefined, { ref: false })] : [];
      await Promise.race([...ended, ...looks]);
      continue;
    }
    waiting.splice(waiting.indexOf(job), 1);
    if (job.after !== undefined && !succeeded.has(job.after)) {
      finish(job, { passed: 0, failed: 1, skipped: [], output: `not run: ${job.after} failed`, seconds: 0 });
      continue;
    }
    const run = async (): Promise<void> => {
      try {
        finish(job, await job.run(signal));
      } finally {
        running.delete(job);
      }
    };
    running.set(job, run());
  }
  await Promise.all(running.values());
}
