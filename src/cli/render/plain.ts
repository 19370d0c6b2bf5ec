/** Events as lines, for where nothing can move: logs, pipes, dumb terminals. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { ProgressEvent } from '../../core/events.ts';
import { formatBytes } from './units.ts';

/** A long step gives a sign of life this often. */
const SIGN_OF_LIFE_MS = 30_000;

interface Step {
  readonly title: string;
  total: number | undefined;
  told: number;
}

/** The line that an event is worth where nothing can move; undefined for most. */
export function createPlainLines(now: () => number): (event: ProgressEvent) => string | undefined {
  const steps = new Map<string, Step>();
  const line = (id: string, text: string): string => harmless(`${steps.get(id)?.title ?? id}: ${text}`);
  return (event) => {
    const step = 'id' in event ? steps.get(event.id) : undefined;
    switch (event.type) {
      case 'step-started':
        steps.set(event.id, { title: event.title, total: event.bytes, told: now() });
        return undefined;
      case 'step-progress':
        if (step === undefined) return undefined;
        step.total = event.total ?? step.total;
        if (now() - step.told < SIGN_OF_LIFE_MS) return undefined;
        step.told = now();
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

/** Nothing secret, nothing that drives a terminal. */
export function harmless(text: string): string {
  return visible(redact(text));
}

/** A step that ends because the command was told to stop has not failed. */
function isCancelled(error: Error): boolean {
  return error instanceof CurlewError && error.code === 'CANCELLED';
}
