/** Runs programs for collectors. */
import { asError } from '../../core/errors.ts';
import { runProgram, type ProgramResult } from '../../platform/process/run-program.ts';
import { CollectProblem, type Host } from './collector.ts';

export interface CollectorProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Maximum bytes of each output; the rest is dropped. */
  readonly outputLimit?: number;
}

/**
 * Returns any status, -1 for a signal. Throws {@link CollectProblem} if the program does not exist. Runs in the C locale. After
 * an abort the program is killed at once.
 */
export async function runCollectorProgram(
  command: string,
  args: readonly string[],
  { env, signal }: Pick<Host, 'env' | 'signal'>,
  options: CollectorProgramOptions = {},
): Promise<Pick<ProgramResult, 'stdout' | 'stderr'> & { readonly status: number }> {
  const own = { env: { ...env, LC_ALL: 'C' }, excess: 'drop', graceMs: 0, signal } as const;
  const { status = -1, error, stdout, stderr } = await runProgram(command, args, { ...own, ...options });
  if (error?.problem === 'missing') throw new CollectProblem(`${command} is not installed`);
  if (error?.problem === 'unusable') {
    throw new CollectProblem(`${command} cannot be run: ${asError(error.cause).message}`);
  }
  return { status, stdout, stderr };
}

/** Output of a program that must succeed. */
export async function outputOf(command: string, args: readonly string[], host: Host): Promise<string> {
  const { status, stdout, stderr } = await runCollectorProgram(command, args, host);
  if (status === 0) return stdout;
  const message = stderr.trim().split('\n')[0]?.slice(0, 200) ?? '';
  throw new CollectProblem(`${command} ended with status ${status}${message === '' ? '' : `: ${message}`}`);
}
