/** Reads one line from the terminal. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CurlewError } from '../core/errors.ts';
import type { CommandContext } from './command.ts';

interface AskOptions {
  /** Do not echo the input. */
  readonly secret?: boolean;
  readonly signal: AbortSignal;
}

/** True if a user can read a question and answer it. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** The line without its line end; undefined at the end of input. Ctrl-C stops the whole command, as elsewhere. */
export async function askLine(query: string, { secret = false, signal }: AskOptions): Promise<string | undefined> {
  signal.throwIfAborted();
  if (process.stdin.readableEnded || process.stdin.destroyed) return undefined;
  const discard = new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  const lines = createInterface({
    input: process.stdin,
    output: secret ? discard : process.stderr,
    terminal: true,
    historySize: 0,
  });
  // Printed only after the terminal's echo is off.
  if (secret) process.stderr.write(query);
  // A terminal in raw mode sends the key instead of the signal.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const close = (): void => lines.close();
  signal.addEventListener('abort', close, { once: true });
  let answer: string | undefined;
  try {
    answer = await new Promise<string | undefined>((resolve) => {
      const end = (): void => resolve(undefined);
      lines.once('close', end);
      // The terminal is gone: reading it and restoring its mode fail.
      lines.on('error', end);
      lines.question(secret ? '' : query, resolve);
    });
    signal.throwIfAborted();
    return answer;
  } finally {
    signal.removeEventListener('abort', close);
    lines.close();
    // Ends the line if the user did not.
    if (secret || answer === undefined) process.stderr.write('\n');
  }
}

/** Asks a yes-or-no question. `USAGE` without a terminal, `CANCELLED` for any answer except yes. */
export async function confirm(
  question: string,
  { signal, around = async (work) => work() }: Pick<CommandContext, 'signal' | 'around'>,
): Promise<void> {
  if (!canAsk()) {
    throw new CurlewError('USAGE', 'cannot ask for confirmation: standard input is not a terminal', {
      hint: 'add --yes',
    });
  }
  const answer = await around(async () => askLine(`${question} [y/N] `, { signal }));
  if (!/^y(?:es)?$/i.test(answer?.trim() ?? '')) throw new CurlewError('CANCELLED', 'nothing has changed');
}
