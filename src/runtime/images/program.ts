/** Runs the client program of a container runtime: questions with short answers, and tars that it takes in. */
import { CurlewError } from '../../core/errors.ts';
import { runProgram } from '../../platform/process/run-program.ts';
import type { Cancellable } from './archive.ts';

export type Env = Readonly<Record<string, string | undefined>>;

export interface Answer {
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export type Words = readonly [command: string, ...args: string[]];

const MAX_OUTPUT = 64 << 20;
/** Questions are answered from what the runtime has in memory, but the machine may be busy. */
const ANSWER_MS = 300_000;

/** Its status and output, whatever they are; a program that is missing has no status. */
export async function ask(
  [command, ...args]: Words,
  { env, signal, timeoutMs = ANSWER_MS }: Cancellable & { readonly env: Env; readonly timeoutMs?: number },
): Promise<Answer> {
  const options = { env, signal, limitMs: timeoutMs, outputLimit: MAX_OUTPUT };
  const { status, stdout, stderr, error } = await runProgram(command, args, options);
  if (error?.problem === 'output') return noAnswer(`${command} printed more than ${MAX_OUTPUT} bytes`);
  if (error?.problem === 'late') return noAnswer(`${command} did not answer in ${timeoutMs / 1000} s`);
  return { status, stdout, stderr };
}

function noAnswer(stderr: string): Answer {
  return { status: undefined, stdout: '', stderr };
}

/** The answer, or an error made of what the program said. */
export async function askSurely(
  doing: string,
  words: Words,
  options: Cancellable & { readonly env: Env },
): Promise<string> {
  const { status, stdout, stderr } = await ask(words, options);
  if (status !== 0) throw loadError(doing, said(words[0], status, stderr));
  return stdout;
}

/**
 * Lets a program take bytes on its standard input. What goes wrong with the bytes themselves is thrown as it is; the
 * program's own failure is `IMAGE_LOAD_FAILED`, or `NO_SPACE`.
 */
export async function feed(
  doing: string,
  [command, ...args]: Words,
  bytes: AsyncIterable<Uint8Array>,
  { env, signal }: Cancellable & { readonly env: Env },
): Promise<void> {
  const options = { env, signal, input: bytes, outputLimit: MAX_OUTPUT };
  const { status, stderr, inputError } = await runProgram(command, args, options);
  // A runtime that ends early closes its input; why it did is what it says, not the broken pipe.
  if (status !== 0) throw loadError(doing, said(command, status, stderr));
  if (inputError !== undefined) throw loadError(doing, inputError.message, inputError);
}

/** The last lines that are no warnings. */
function said(command: string, status: number | undefined, stderr: string): string {
  const lines = stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !/\blevel=(?:warning|info|debug)\b/.test(line));
  const text = lines.slice(-3).join('; ').slice(-1000);
  return text === '' ? `${command} ended with status ${status ?? 'unknown'}` : text;
}

export function loadError(doing: string, why: string, cause?: unknown): CurlewError {
  if (/no space left on device|disk quota exceeded/.test(why)) {
    return new CurlewError('NO_SPACE', `${doing}: ${why}`, {
      hint: 'free some space where the container runtime keeps its images, then run the same command again',
      cause,
    });
  }
  return new CurlewError('IMAGE_LOAD_FAILED', `${doing}: ${why}`, {
    hint: 'see that the container runtime is well, then run the same command again',
    cause,
  });
}
