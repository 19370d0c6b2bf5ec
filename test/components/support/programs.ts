/** Programs that component tests run, and how they learn that one is missing. */
import { execa } from 'execa';
import { join } from 'node:path';
import { missing } from '../../support/needs.ts';

export const ROOT: string = join(import.meta.dirname, '../../..');

/** Runs a program and hands back its standard output without the last newline; a failure throws with its output. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<string> {
  const { stdout } = await execa(command, args, { stdin: options.input === undefined ? 'ignore' : 'pipe', ...options });
  return stdout;
}

export async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  const { exitCode } = await execa(command, args, { reject: false, stdin: 'ignore' });
  return exitCode === 0;
}

/** Runs a line of bash with `pipefail`; values come in as `$1`, `$2`… */
export async function shell(line: string, ...values: readonly string[]): Promise<string> {
  return run('bash', ['-euo', 'pipefail', '-c', line, 'bash', ...values]);
}

/** Path of a program that `scripts/tools` makes. */
export function oracle(name: string): string {
  return join(ROOT, '.curlew/tools/bin', name);
}

/** Why tests that need root and these programs cannot run here, or undefined when they can. */
export function cannotRun(...programs: readonly string[]): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  return missing(...programs);
}
