/** A question that has to be answered with yes before something is done that cannot be undone. */
import { createInterface } from 'node:readline/promises';
import { CurlewError } from '../core/errors.ts';

/** `USAGE` where nobody can be asked, `CANCELLED` for any other answer than yes. */
export async function confirm(question: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new CurlewError('USAGE', 'nobody can be asked whether this is meant: standard input is no terminal', {
      hint: 'add --yes',
    });
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal });
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new CurlewError('CANCELLED', 'nothing was changed');
  } finally {
    lines.close();
  }
}
