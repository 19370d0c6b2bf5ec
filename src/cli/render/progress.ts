/** Chooses how progress is shown: moving on a terminal, plain lines elsewhere, nothing when quiet. */
import type { Report } from '../../core/events.ts';
import { createPlainLines } from './plain.ts';

export interface Progress {
  readonly report: Report;
  /** Takes everything moving off the screen for as long as `work` has it to itself. */
  readonly around: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Takes everything moving off the screen and waits for it. May be called twice. */
  readonly stop: () => Promise<void>;
}

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
