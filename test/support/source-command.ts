/** The command from its sources, as a process: no build comes first. */
import { execa } from 'execa';
import { resolve } from 'node:path';

/** Words for Node that start the command; its own words follow. */
export const SOURCE_COMMAND: readonly string[] = ['--import', import.meta.resolve('tsx'), resolve('src/cli/main.ts')];

export interface SourceOutcome {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end, whatever its status. `env` is added to that of the tests. */
export async function runFromSource(
  words: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<SourceOutcome> {
  const args = [...SOURCE_COMMAND, ...words];
  const { exitCode, stdout, stderr } = await execa(process.execPath, args, {
    cwd,
    env,
    reject: false,
    stdin: 'ignore',
  });
  return { exitCode, stdout, stderr };
}
