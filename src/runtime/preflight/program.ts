/** Programs that collectors run: bounded in output, ended with all they started when the signal says so. */
import { spawn } from 'node:child_process';
import { errnoOf } from '../../core/errors.ts';
import { CollectProblem, type Host } from './collector.ts';

export interface ProgramResult {
  /** -1 when a signal ended it. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Most bytes of each output; what comes after is dropped. */
  readonly limit?: number;
}

const OUTPUT_LIMIT = 8 << 20;

/** Any status comes back; a program that is not there is a {@link CollectProblem}. Output is read in the C locale. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { env, signal }: Pick<Host, 'env' | 'signal'>,
  { cwd, env: own, limit = OUTPUT_LIMIT }: ProgramOptions = {},
): Promise<ProgramResult> {
  signal.throwIfAborted();
  const child = spawn(command, args, {
    // A group of its own, so that everything that it started can be ended.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: own ?? { ...env, LC_ALL: 'C' },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const outputs = [boundedText(child.stdout, limit), boundedText(child.stderr, limit)] as const;
  const kill = (): void => endGroup(child.pid);
  signal.addEventListener('abort', kill);
  try {
    const status = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? -1));
    });
    signal.throwIfAborted();
    return { status, stdout: outputs[0](), stderr: outputs[1]() };
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT') throw new CollectProblem(`${command} is not installed`);
    throw new CollectProblem(`${command} cannot be run: ${error instanceof Error ? error.message : 'unknown'}`);
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

function boundedText(stream: NodeJS.ReadableStream, limit: number): () => string {
  const parts: Buffer[] = [];
  let left = limit;
  stream.on('data', (chunk: Buffer) => {
    if (left <= 0) return;
    parts.push(chunk.subarray(0, left));
    left -= chunk.byteLength;
  });
  stream.on('error', () => undefined);
  return () => Buffer.concat(parts).toString('utf8');
}

/** Output of a program that has to succeed. */
export async function outputOf(command: string, args: readonly string[], host: Host): Promise<string> {
  const { status, stdout, stderr } = await runProgram(command, args, host);
  if (status === 0) return stdout;
  const said = stderr.trim().split('\n')[0]?.slice(0, 200) ?? '';
  throw new CollectProblem(`${command} ended with status ${status}${said === '' ? '' : `: ${said}`}`);
}
