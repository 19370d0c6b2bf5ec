/** Selects the progress display: animated on a terminal, plain lines elsewhere, none with --quiet. */
import { createPlainLines, QUIET_MS } from './plain.ts';
import type { Progress } from './terminal.ts';

/** Looks in the longest time without a line: it is over at most a tenth later. */
const LOOKS = 10;

export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  /** The stream is a terminal that can move its cursor. */
  readonly animated: boolean;
  readonly quiet: boolean;
  /** The work of the command, until its first step begins. */
  readonly title: string;
  /** The result lists what the steps have done. */
  readonly isListed: boolean;
}

/** With `quiet`, shows nothing, not even notes: important warnings are part of results. */
export async function createProgress({ stream, animated, quiet, title, isListed }: ProgressOptions): Promise<Progress> {
  const around: Progress['around'] = async (work) => work();
  if (quiet) return { report: () => undefined, around, stop: async () => undefined };
  if (animated) {
    const { createTerminalProgress } = await import('./terminal.ts');
    return createTerminalProgress(stream, title);
  }
  const lines = createPlainLines(Date.now, title, { isListed });
  const write = (text: string | undefined): void => {
    if (text !== undefined) stream.write(`${text}\n`);
  };
  const timer = setInterval(() => write(lines.waiting()), QUIET_MS / LOOKS).unref();
  return { report: (event) => write(lines.take(event)), around, stop: async () => clearInterval(timer) };
}
