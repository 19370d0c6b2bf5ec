/** The machine that is inspected: its files and its programs. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, unlessMissing } from '../../core/errors.ts';
import { shortened } from '../../core/shortened.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { tryProgram, type ProgramResult } from '../../platform/process/run-program.ts';

export interface Host {
  /** Root of its files: `/`, or another folder in tests. */
  readonly root: string;
  /** Environment of programs, including PATH. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Bytes of a program's output that a collector of the spec's choice keeps. */
  readonly outputLimit?: number | undefined;
}

/** The reason why there are no facts, for operators. */
export class CollectProblem extends Error {}

const FILE_LIMIT = 8 << 20;

export function hostPath({ root }: Host, path: string): string {
  return join(root, path);
}

/** The text of a file; undefined if it does not exist. */
export async function readHostFile(host: Host, path: string, limit: number = FILE_LIMIT): Promise<string | undefined> {
  host.signal.throwIfAborted();
  const target = hostPath(host, path);
  if ((await unlessMissing(stat(target))) === undefined) return undefined;
  return (await readLimited(target, limit)).toString('utf8');
}

export interface CollectorProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Maximum bytes of each output; the rest is dropped. */
  readonly outputLimit?: number;
}

type CollectedOutput = Pick<ProgramResult, 'stdout' | 'stderr'> & { readonly status: number };

/**
 * What `judge` returns for any status, -1 for a signal. Throws {@link CollectProblem} if the program does not exist. Runs in the C locale.
 * After an abort the program is killed at once.
 */
export async function runCollectorProgram<Verdict>(
  command: string,
  args: readonly string[],
  { env, signal }: Pick<Host, 'env' | 'signal'>,
  options: CollectorProgramOptions,
  judge: (ended: CollectedOutput) => Verdict | Promise<Verdict>,
): Promise<Verdict> {
  const own = { env: { ...env, LC_ALL: 'C' }, excess: 'drop', graceMs: 0, signal } as const;
  return tryProgram(command, args, { ...own, ...options }, ({ status = -1, error, stdout, stderr }) => {
    if (error?.problem === 'missing') throw new CollectProblem(`${command} is not installed`);
    if (error?.problem === 'unusable') {
      throw new CollectProblem(`${command} cannot be run: ${asError(error.cause).message}`);
    }
    return judge({ status, stdout, stderr });
  });
}

/** Output of a program that must succeed. */
export async function outputOf(command: string, args: readonly string[], host: Host): Promise<string> {
  return runCollectorProgram(command, args, host, {}, ({ status, stdout, stderr }) => {
    if (status === 0) return stdout;
    const message = shortened(stderr.trim().split('\n')[0] ?? '', 200);
    throw new CollectProblem(`${command} ended with status ${status}${message === '' ? '' : `: ${message}`}`);
  });
}
