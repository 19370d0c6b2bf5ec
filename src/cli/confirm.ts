/** A question that has to be answered with yes before something is done that cannot be undone. */
import { createInterface } from 'node:readline/promises';
import { CurlewError } from '../core/errors.ts';

/**
 * `USAGE` where nobody can be asked, `CANCELLED` for any other answer than yes: Ctrl-C, and the end of the input, are answers,
 * too.
 */
export async function confirm(question: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new CurlewError('USAGE', 'nobody can be asked whether this is meant: standard input is no terminal', {
      hint: 'add --yes',
    });
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // Of these readline says nothing to whoever waits for the answer.
  const left = new AbortController();
  const leave = (): void => {
    left.abort();
  };
  lines.once('SIGINT', leave).once('close', leave);
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: AbortSignal.any([signal, left.signal]) });
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new CurlewError('CANCELLED', 'cancelled: nothing was changed');
  } catch (error) {
    signal.throwIfAborted();
    if (!left.signal.aborted) throw error;
    throw new CurlewError('CANCELLED', 'cancelled: nothing was changed');
  } finally {
    lines.close();
  }
}
