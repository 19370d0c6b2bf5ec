/** One test file or one step as a process group of its own, whose output is kept in a log. */
import { execa } from 'execa';
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
const HANDED_ON = { NODE_EXTRA_CA_CERTS: undefined, CURLEW_TEST_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'] };

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly log: string;
  readonly kind: keyof typeof LIMIT_MS;
  /** Where tests are chosen by their titles, a file may have none of them. */
  readonly mayBeEmpty?: boolean;
  readonly signal: AbortSignal;
}

interface Ended {
  readonly exitCode: number | undefined;
  readonly output: string;
  readonly seconds: number;
}

/** Runs a test file and reads from its output what became of its tests. */
export async function runTestFile(words: readonly string[], options: ProcessOptions): Promise<Result> {
  const { exitCode, output, seconds } = await runToEnd(words, { ...options, env: { ...options.env, ...HANDED_ON } });
  const total = count(output, /^ {2}Total: +(\d+)/gm);
  const passed = count(output, /^ {2}Passed: +(\d+)/gm);
  const skipped = [...output.matchAll(/^SKIPPED (.+?) \| /gm)].map(([, reason = '']) => reason);
  // A file that ends badly without a failed test of its own (it crashed, hung or ran nothing) is one failure.
  const isBroken = exitCode !== 0 || (total === 0 && options.mayBeEmpty !== true);
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

async function runToEnd(
  [command = '', ...words]: readonly string[],
  { env = {}, log, kind, signal }: ProcessOptions,
): Promise<Ended> {
  const started = performance.now();
  const child = execa(command, words, {
    all: true,
    reject: false,
    stdin: 'ignore',
    // Whatever a file starts can be ended together with it.
    detached: true,
    env: { NO_COLOR: '1', FORCE_COLOR: '0', ...env },
  });
  const end = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name);
    } catch {
      // The group has ended.
    }
  };
  let isLate = false;
  const stop = (): void => {
    end('SIGTERM');
    killer = setTimeout(() => {
      end('SIGKILL');
    }, GRACE_MS);
  };
  let killer: NodeJS.Timeout | undefined;
  const limit = setTimeout(() => {
    isLate = true;
    stop();
  }, LIMIT_MS[kind]);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const { all, exitCode } = await child;
  clearTimeout(limit);
  clearTimeout(killer);
  signal.removeEventListener('abort', stop);
  end('SIGKILL');
  const note = isLate ? `\nended after ${LIMIT_MS[kind] / 60_000} minutes\n` : '';
  const output = all.replaceAll(/\u001b\[[0-9;]*m/g, '') + note;
  await mkdir(dirname(log), { recursive: true });
  await writeFile(log, output);
  return { exitCode: isLate ? undefined : exitCode, output, seconds: (performance.now() - started) / 1000 };
}

function count(output: string, pattern: RegExp): number {
  return [...output.matchAll(pattern)].reduce((sum, [, digits]) => sum + Number(digits), 0);
}
