/** Runs the client program of a container runtime: queries with short answers, and imports of tars. */
import { CurlewError } from '../../core/errors.ts';
import { shortened } from '../../core/shortened.ts';
import { tryProgram, type ProgramResult } from '../../platform/process/run-program.ts';
import type { Cancellable } from '../../core/cancellable.ts';

export type Env = Readonly<Record<string, string | undefined>>;

type Answer = Pick<ProgramResult, 'status' | 'stdout' | 'stderr'>;

export type Argv = readonly [command: string, ...args: string[]];

const MAX_OUTPUT = 64 << 20;
/** Runtimes answer from memory, but the machine may be busy. */
const ANSWER_MS = 300_000;

/** What `judge` returns for its status and output, even after a failure; a missing program has no status. */
export async function runClient<Verdict>(
  [command, ...args]: Argv,
  { env, signal, timeoutMs = ANSWER_MS }: Cancellable & { readonly env: Env; readonly timeoutMs?: number },
  judge: (answer: Answer) => Verdict,
): Promise<Verdict> {
  const options = { env, signal, limitMs: timeoutMs, outputLimit: MAX_OUTPUT };
  return tryProgram(command, args, options, ({ status, stdout, stderr, error }) => {
    if (error?.problem === 'output') return judge(noAnswer(`${command} printed more than ${MAX_OUTPUT} bytes`));
    if (error?.problem === 'late') return judge(noAnswer(`${command} did not respond in ${timeoutMs / 1000} s`));
    return judge({ status, stdout, stderr });
  });
}

function noAnswer(stderr: string): Answer {
  return { status: undefined, stdout: '', stderr };
}

/** Its output; throws an error with the program's message if it fails. */
export async function runClientOrThrow(
  doing: string,
  command: Argv,
  options: Cancellable & { readonly env: Env },
): Promise<string> {
  return runClient(command, options, ({ status, stdout, stderr }) => {
    if (status !== 0) throw loadError(doing, lastWords(command[0], status, stderr));
    return stdout;
  });
}

/**
 * Sends bytes to a program's standard input. Errors of the source are thrown unchanged; a failure of the program is
 * `IMAGE_LOAD_FAILED` or `NO_SPACE`.
 */
export async function feed(
  doing: string,
  [command, ...args]: Argv,
  bytes: AsyncIterable<Uint8Array>,
  { env, signal }: Cancellable & { readonly env: Env },
): Promise<void> {
  const options = { env, signal, input: bytes, outputLimit: MAX_OUTPUT };
  await tryProgram(command, args, options, ({ status, stderr, inputError }) => {
    // A runtime that ends early closes its input: report its own message, not the broken pipe.
    if (status !== 0) throw loadError(doing, lastWords(command, status, stderr));
    if (inputError !== undefined) throw loadError(doing, inputError.message, inputError);
  });
}

/** The last lines that are not warnings. */
export function lastWords(command: string, status: number | undefined, stderr: string): string {
  const lines = stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !/\blevel=(?:warning|info|debug)\b/.test(line));
  const text = shortened(lines.slice(-3).join('; '), 1000);
  return text === '' ? `${command} ended with status ${status ?? 'unknown'}` : text;
}

export function loadError(doing: string, why: string, cause?: unknown): CurlewError {
  if (/no space left on device|disk quota exceeded/.test(why)) {
    return new CurlewError('NO_SPACE', `cannot ${doing}: ${why}`, {
      hint: 'free some space on the disk of the container runtime, then run the same command again',
      cause,
    });
  }
  return new CurlewError('IMAGE_LOAD_FAILED', `cannot ${doing}: ${why}`, {
    hint: 'check the container runtime, then run the same command again',
    cause,
  });
}
