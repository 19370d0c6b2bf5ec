/** One line from whoever sits at the terminal. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CurlewError } from '../core/errors.ts';

interface AskOptions {
  /** What is typed is not shown. */
  readonly secret?: boolean;
  readonly signal: AbortSignal;
}

/** Somebody can read what is asked, and answer. */
function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Without its line end; undefined when the input has ended. Ctrl-C stops the whole command, as it does elsewhere. */
export async function askLine(query: string, { secret = false, signal }: AskOptions): Promise<string | undefined> {
  signal.throwIfAborted();
  if (process.stdin.readableEnded || process.stdin.destroyed) return undefined;
  const nowhere = new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  const lines = createInterface({
    input: process.stdin,
    output: secret ? nowhere : process.stderr,
    terminal: true,
    historySize: 0,
  });
  // Not before the terminal has stopped to show what is typed.
  if (secret) process.stderr.write(query);
  // The terminal passes the key on, in place of sending the signal.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const close = (): void => lines.close();
  signal.addEventListener('abort', close, { once: true });
  let answer: string | undefined;
  try {
    answer = await new Promise<string | undefined>((resolve) => {
      const end = (): void => resolve(undefined);
      lines.once('close', end);
      // The terminal has gone: neither can it be read nor its mode be restored.
      lines.on('error', end);
      lines.question(secret ? '' : query, resolve);
    });
    signal.throwIfAborted();
    return answer;
  } finally {
    signal.removeEventListener('abort', close);
    lines.close();
    // What comes next begins a line of its own, also where nobody has ended this one.
    if (secret || answer === undefined) process.stderr.write('\n');
  }
}

/** `USAGE` where nobody can be asked, `CANCELLED` for any other answer than yes. */
export async function confirm(question: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  if (!canAsk()) {
    throw new CurlewError('USAGE', 'nobody can be asked whether this is meant: standard input is no terminal', {
      hint: 'add --yes',
    });
  }
  const answer = await askLine(`${question} [y/N] `, { signal });
  if (!/^y(?:es)?$/i.test(answer?.trim() ?? '')) throw new CurlewError('CANCELLED', 'nothing was changed');
}
