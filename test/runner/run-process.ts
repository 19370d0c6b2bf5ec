/** One test file or one step as a process group of its own, whose output is kept in a log. */
import { execa } from 'execa';
import type { ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Result } from './schedule.ts';

/** Against hanging; no measurement. A soak takes hours. */
const LIMIT_MS = { test: 1_200_000, soak: 12 * 3_600_000 } as const;
/** What a process group has to clean up after it was asked to end. */
const GRACE_MS = 10_000;

/**
 * Under this name for the programs that tests start. Node reads all of these certificates before it starts, which takes longer than
 * the start; test files themselves ask servers of tests only, which have others.
 */
export const HANDED_ON = { NODE_EXTRA_CA_CERTS: undefined, CURLEW_TEST_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'] };

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly log: string;
  readonly kind: keyof typeof LIMIT_MS;
  /** Where tests are chosen by their titles, a file may have none of them. */
  readonly mayBeEmpty?: boolean;
  readonly signal: AbortSignal;
}

/** How a process, or a file in one, came to its end. */
export interface Ended {
  /** Undefined where it was ended from outside. */
  readonly exitCode: number | undefined;
  readonly output: string;
  readonly seconds: number;
}

/** Runs a test file and reads from its output what became of its tests. */
export async function runTestFile(words: readonly string[], options: ProcessOptions): Promise<Result> {
  return resultOf(await runToEnd(words, { ...options, env: { ...options.env, ...HANDED_ON } }), options);
}

/** What became of the tests of a file that has ended. */
export function resultOf(
  { exitCode, output, seconds }: Ended,
  { mayBeEmpty = false }: Pick<ProcessOptions, 'mayBeEmpty'>,
): Result {
  const total = count(output, /^ {2}Total: +(\d+)/gm);
  const passed = count(output, /^ {2}Passed: +(\d+)/gm);
  const skipped = [...output.matchAll(/^SKIPPED (.+?) \| /gm)].map(([, reason = '']) => reason);
  // A file that ends badly without a failed test of its own (it crashed, hung or ran nothing) is one failure.
  const isBroken = exitCode !== 0 || (total === 0 && !mayBeEmpty);
  const cpu = /^CPU ([\d.]+)$/m.exec(output)?.[1];
  const failed = Math.max(total - passed, isBroken ? 1 : 0);
  return { passed, failed, skipped, output, seconds, ...(cpu === undefined ? {} : { cpu: Number(cpu) }) };
}

/** Runs a step that counts as one test. */
export async function runStep(words: readonly string[], options: ProcessOptions): Promise<Result> {
  const { exitCode, output, seconds } = await runToEnd(words, options);
  const isOk = exitCode === 0;
  return { passed: isOk ? 1 : 0, failed: isOk ? 0 : 1, skipped: [], output, seconds };
}

async function runToEnd([command = '', ...words]: readonly string[], options: ProcessOptions): Promise<Ended> {
  const child = execa(command, words, { ...SPAWNED, all: true, reject: false, env: { ...PLAIN, ...options.env } });
  return within(child, options, async () => {
    const { all, exitCode } = await child;
    killGroup(child, 'SIGKILL');
    return { output: all, exitCode };
  });
}

/** Whatever a file starts can be ended together with it. */
const SPAWNED = { stdin: 'ignore', detached: true } as const;
export const PLAIN: Readonly<Record<string, string>> = { NO_COLOR: '1', FORCE_COLOR: '0' };

/** Sends a signal to a process that leads a group, and to all of its group. */
export function killGroup({ pid }: Pick<ChildProcess, 'pid'>, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch {
    // The group has ended.
  }
}

/** Waits for work that a process group does, ends the group when that is late or the run is stopped, and keeps the output in the log. */
export async function within(
  group: Pick<ChildProcess, 'pid'>,
  { log, kind, signal }: ProcessOptions,
  work: () => Promise<Omit<Ended, 'seconds'>>,
): Promise<Ended> {
  const started = performance.now();
  let isLate = false;
  let killer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    killGroup(group, 'SIGTERM');
    killer = setTimeout(() => {
      killGroup(group, 'SIGKILL');
    }, GRACE_MS);
  };
  const limit = setTimeout(() => {
    isLate = true;
    stop();
  }, LIMIT_MS[kind]);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const { output: printed, exitCode } = await work();
  clearTimeout(limit);
  clearTimeout(killer);
  signal.removeEventListener('abort', stop);
  const note = isLate ? `\nended after ${LIMIT_MS[kind] / 60_000} minutes\n` : '';
  const output = printed.replaceAll(/\u001b\[[0-9;]*m/g, '') + note;
  await mkdir(dirname(log), { recursive: true });
  await writeFile(log, output);
  return { exitCode: isLate ? undefined : exitCode, output, seconds: (performance.now() - started) / 1000 };
}

function count(output: string, pattern: RegExp): number {
  return [...output.matchAll(pattern)].reduce((sum, [, digits]) => sum + Number(digits), 0);
}
