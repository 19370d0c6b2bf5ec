/** The built command, run as a user would: `npm run build` comes first. */
import { execa } from 'execa';
import { join } from 'node:path';

export const MAIN: string = join(import.meta.dirname, '../../dist/cli/main.js');

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CurlewOptions {
  readonly cwd: string;
  /** Added to an environment that holds only PATH, and HOME = `cwd`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another Node than the one that runs the tests. */
  readonly node?: string;
}

/** The environment that commands of the tests get: nothing of the machine's own proxies, configuration or locale. */
export function cleanEnvironment({ cwd, env = {} }: CurlewOptions): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env };
}

/** Runs `curlew …` and hands back what it said, whatever its status. */
export async function curlew(args: readonly string[], options: CurlewOptions): Promise<Outcome> {
  const result = await execa(options.node ?? process.execPath, [MAIN, ...args], {
    cwd: options.cwd,
    env: cleanEnvironment(options),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  return { status: result.exitCode ?? 255, stdout: result.stdout, stderr: result.stderr };
}

/** Runs `curlew …`, which must succeed, and hands back its standard output. */
export async function curlewOk(args: readonly string[], options: CurlewOptions): Promise<string> {
  const { status, stdout, stderr } = await curlew(args, options);
  if (status !== 0) throw new Error(`curlew ${args.join(' ')}: status ${status}\n${stdout}\n${stderr}`);
  return stdout;
}
