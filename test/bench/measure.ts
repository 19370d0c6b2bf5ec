/** One timed run of a command line, and what many of them say together. */
import { execa } from 'execa';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

export interface Sample {
  readonly seconds: number;
  /** User and system time of the command and of what it waited for. */
  readonly cpu: number;
  /** Peak memory of its largest process, in MB. */
  readonly rss: number;
}

/**
 * Runs a line of bash under GNU time. Values come in as `$1`, `$2`…; a failure throws with the output.
 * Before the clock starts, what earlier runs wrote is on disk.
 */
export async function measure(line: string, values: readonly string[], scratch: string): Promise<Sample> {
  const report = join(scratch, 'time');
  await execa('sync', ['--file-system', scratch]);
  await execa(
    '/usr/bin/time',
    ['-f', '%e %U %S %M', '-o', report, 'bash', '-euo', 'pipefail', '-c', line, 'bash', ...values],
    { stdin: 'ignore', all: true },
  );
  const text = await readFile(report, 'utf8');
  await rm(report);
  const [wall = 0, user = 0, system = 0, kilobytes = 0] = text.trim().split(' ').map(Number);
  return { seconds: wall, cpu: user + system, rss: kilobytes / 1024 };
}

/** Wall time of something short, in milliseconds, by the monotonic clock. */
export async function milliseconds(command: string, args: readonly string[]): Promise<number> {
  const start = process.hrtime.bigint();
  await execa(command, args, { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' });
  return Number(process.hrtime.bigint() - start) / 1e6;
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  const lower = sorted.length % 2 === 0 ? (sorted[middle - 1] ?? Number.NaN) : upper;
  return { median: (lower + upper) / 2, least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}

/** Quotients of runs that stood side by side: the first by the first, the second by the second. */
export function pairwise(left: readonly number[], right: readonly number[]): Spread {
  const count = Math.min(left.length, right.length);
  return spread(
    Array.from({ length: count }, (_, index) => (left[index] ?? Number.NaN) / (right[index] ?? Number.NaN)),
  );
}
