/** Chooses how progress is shown: moving on a terminal, plain lines elsewhere, nothing when quiet. */
import { createPlainLines } from './plain.ts';
import type { Progress } from './terminal.ts';

export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  /** The stream is a terminal that can move its cursor. */
  readonly moving: boolean;
  readonly quiet: boolean;
}

/** Nothing is shown when quiet, not even notes: warnings that matter are results. */
export async function createProgress({ stream, moving, quiet }: ProgressOptions): Promise<Progress> {
  const around: Progress['around'] = async (work) => work();
  if (quiet) return { report: () => undefined, around, stop: async () => undefined };
  if (moving) {
    const { createTerminalProgress } = await import('./terminal.ts');
    return createTerminalProgress(stream);
  }
  const lines = createPlainLines(Date.now);
  return {
    report: (event) => {
      const text = lines(event);
      if (text !== undefined) stream.write(`${text}\n`);
    },
    around,
    stop: async () => undefined,
  };
}
