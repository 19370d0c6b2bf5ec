/** The command as a process of its own, run as a user would. */
import { execa } from 'execa';
import { MAIN } from './compiled.ts';

export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CurlewOptions {
  readonly cwd: string;
  /** Added to an environment that holds only PATH, and HOME = `cwd`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another Node than the one that runs the tests. */
  readonly node?: string;
  /** Another build of the command, such as `BUILT_MAIN` of built.ts. */
  readonly main?: string;
  /** Kills it when it is aborted. */
  readonly signal?: AbortSignal;
}

/** The environment that commands of the tests get: nothing of the machine's own proxies, configuration or locale. */
export function cleanEnvironment({ cwd, env = {} }: CurlewOptions): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env };
}

/** Starts `curlew …`, for whoever sends it signals; a failure rejects nothing. The type follows from the options. */
export function startCurlew(args: readonly string[], options: CurlewOptions) {
  return execa(options.node ?? process.execPath, [options.main ?? MAIN, ...args], {
    cwd: options.cwd,
    env: cleanEnvironment(options),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    ...(options.signal === undefined ? {} : { cancelSignal: options.signal }),
  });
}

/** Presses Ctrl-C again and again until the command has ended; returns the signal that ended it, if one did. */
export async function interruptedAgain(child: ReturnType<typeof startCurlew>): Promise<string | undefined> {
  child.kill('SIGINT');
  const again = setInterval(() => child.kill('SIGINT'), 200);
  const { signal } = await child;
  clearInterval(again);
  return signal;
}

/** Runs `curlew …` and returns what it printed, whatever its status; a warning of Node's is thrown. */
export async function curlew(args: readonly string[], options: CurlewOptions): Promise<Outcome> {
  const { exitCode = 255, stdout, stderr } = await startCurlew(args, options);
  // Node's own warnings are nothing that a user could mend.
  if (options.node === undefined && /^\(node:\d+\) /m.test(stderr)) throw new Error(`Node warns: ${stderr}`);
  return { exitCode, stdout, stderr };
}

/** Runs `curlew …`, which must succeed, and hands back its standard output. */
export async function curlewOk(args: readonly string[], options: CurlewOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await curlew(args, options);
  if (exitCode !== 0) throw new Error(`curlew ${args.join(' ')}: status ${exitCode}\n${stdout}\n${stderr}`);
  return stdout;
}
