/** Runs the client program of a container runtime: questions with short answers, and tars that it takes in. */
import { execa } from 'execa';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { asError, CurlewError } from '../../core/errors.ts';
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
  const { exitCode, stdout, stderr, isMaxBuffer, timedOut } = await execa(command, args, {
    ...quiet(env, signal),
    stdin: 'ignore',
    timeout: timeoutMs,
    maxBuffer: MAX_OUTPUT,
  });
  signal.throwIfAborted();
  if (isMaxBuffer) return { status: undefined, stdout: '', stderr: `${command} printed more than ${MAX_OUTPUT} bytes` };
  if (timedOut) return { status: undefined, stdout: '', stderr: `${command} did not answer in ${timeoutMs / 1000} s` };
  return { status: exitCode, stdout, stderr };
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
  const stdout = 'ignore';
  const child = execa(command, args, { ...quiet(env, signal), stdin: 'pipe', stdout, maxBuffer: MAX_OUTPUT });
  let ours: Error | undefined;
  // A broken pipe is thrown into a generator where it waits: only what the source itself throws is its error.
  const watched = async function* watched(): AsyncGenerator<Uint8Array, void, undefined> {
    const chunks = bytes[Symbol.asyncIterator]();
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      try {
        return await chunks.next();
      } catch (error) {
        ours = asError(error);
        throw error;
      }
    };
    try {
      for (let chunk = await next(); chunk.done !== true; chunk = await next()) yield chunk.value;
    } finally {
      await chunks.return?.();
    }
  };
  // A runtime that ends early closes its input; why it did is what it says, not the broken pipe.
  const [piped, { exitCode, stderr }] = await Promise.all([
    pipeline(Readable.from(watched()), child.stdin, { signal }).then(
      () => undefined,
      (error: unknown) => asError(error),
    ),
    child,
  ]);
  signal.throwIfAborted();
  if (ours !== undefined) throw ours;
  if (exitCode !== 0) throw loadError(doing, said(command, exitCode, stderr));
  if (piped !== undefined) throw loadError(doing, piped.message, piped);
}

// The shape is left to inference: execa's result types follow from the literal options.
function quiet(env: Env, cancelSignal: AbortSignal) {
  return { reject: false, env, extendEnv: false, cancelSignal } as const;
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
