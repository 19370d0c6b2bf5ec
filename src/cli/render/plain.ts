/** Progress as plain lines, for logs, pipes and dumb terminals. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { ProgressEvent } from '../../core/events.ts';
import { formatBytes } from './units.ts';

/** Interval of progress lines of a long step. */
const PROGRESS_MS = 30_000;

interface Step {
  readonly title: string;
  total: number | undefined;
  printedAt: number;
}

/** Returns the line to print for an event; undefined for most. */
export function createPlainLines(now: () => number): (event: ProgressEvent) => string | undefined {
  const steps = new Map<string, Step>();
  const line = (id: string, text: string): string => harmless(`${steps.get(id)?.title ?? id}: ${text}`);
  return (event) => {
    const step = 'id' in event ? steps.get(event.id) : undefined;
    switch (event.type) {
      case 'step-started':
        steps.set(event.id, { title: event.title, total: event.bytes, printedAt: now() });
        return undefined;
      case 'step-progress':
        if (step === undefined) return undefined;
        step.total = event.total ?? step.total;
        if (now() - step.printedAt < PROGRESS_MS) return undefined;
        step.printedAt = now();
        return line(
          event.id,
          `${formatBytes(event.bytes)}${step.total === undefined ? '' : ` of ${formatBytes(step.total)}`}`,
        );
      case 'step-log':
        return undefined;
      case 'step-done':
        return line(event.id, event.outcome);
      case 'step-failed':
        return isCancelled(event.error) ? undefined : line(event.id, 'failed');
      case 'note':
        return harmless(event.level === 'warning' ? `warning: ${event.text}` : event.text);
    }
  };
}

/** Removes secrets and terminal control sequences. */
export function harmless(text: string): string {
  return visible(redact(text));
}

/** True for a canceled step, which is not a failure. */
function isCancelled(error: Error): boolean {
  return error instanceof CurlewError && error.code === 'CANCELLED';
}
