/** Chooses how progress is shown: moving on a terminal, plain lines elsewhere, nothing when quiet. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';

export interface Progress {
  readonly report: Report;
  /** Takes everything moving off the screen and waits for it. May be called twice. */
  readonly stop: () => Promise<void>;
}

export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  readonly quiet: boolean;
}

/** Nothing is shown when quiet, not even notes: warnings that matter are results. */
export async function createProgress({ stream, quiet }: ProgressOptions): Promise<Progress> {
  if (quiet) return { report: () => undefined, stop: async () => undefined };
  if (!stream.isTTY) return plainLines(stream);
  const { createTerminalProgress } = await import('./terminal.ts');
  return createTerminalProgress(stream);
}

function plainLines(stream: NodeJS.WriteStream): Progress {
  const titles = new Map<string, string>();
  const line = (text: string): void => {
    stream.write(`${visible(redact(text))}\n`);
  };
  const report: Report = (event) => {
    switch (event.type) {
      case 'step-started':
        titles.set(event.id, event.title);
        break;
      case 'step-progress':
      case 'step-log':
        break;
      case 'step-done':
        line(`${titles.get(event.id) ?? event.id}: ${event.outcome}`);
        break;
      case 'step-failed':
        if (event.error instanceof CurlewError && event.error.code === 'CANCELLED') break;
        line(`${titles.get(event.id) ?? event.id}: failed`);
        break;
      case 'note':
        line(event.level === 'warning' ? `warning: ${event.text}` : event.text);
        break;
    }
  };
  return { report, stop: async () => undefined };
}
