/** Progress events as plain lines on standard error; nothing when quiet. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';

export interface Progress {
  readonly report: Report;
  /** Takes everything moving off the screen. May be called twice. */
  readonly stop: () => void;
}

export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  readonly quiet: boolean;
}

/** Chooses how progress is shown. Nothing is shown when quiet, not even notes; warnings that matter are results. */
export function createProgress({ stream, quiet }: ProgressOptions): Progress {
  const titles = new Map<string, string>();
  const line = (text: string): void => {
    stream.write(`${visible(redact(text))}\n`);
  };
  const report: Report = (event) => {
    if (quiet) return;
    switch (event.type) {
      case 'step-started':
        titles.set(event.id, event.title);
        break;
      case 'step-progress':
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
  return { report, stop: () => undefined };
}
