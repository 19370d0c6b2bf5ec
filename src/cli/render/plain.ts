/** Progress as plain lines, for logs, pipes and dumb terminals. */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { ProgressEvent } from '../../core/events.ts';
import { formatBytes, formatSeconds } from './units.ts';

/** Longest time without a line. */
export const QUIET_MS = 10_000;

interface Step {
  readonly title: string;
  readonly since: number;
  done: number;
  total: number | undefined;
}

interface PlainLines {
  /** The line to print for an event; undefined for most. */
  readonly take: (event: ProgressEvent) => string | undefined;
  /** The line to print if there was none for {@link QUIET_MS}: the step that runs longest, or before all steps the command. */
  readonly waiting: () => string | undefined;
}

/**
 * `title` is what the command does until its first step begins. `isListed` says that the result will list what the steps have
 * done: then the end of a step is no line.
 */
export function createPlainLines(now: () => number, title: string, { isListed = false } = {}): PlainLines {
  const steps = new Map<string, Step>();
  const started = now();
  let printedAt = started;
  let isBegun = false;
  const lineOf = (event: ProgressEvent): string | undefined => {
    if (event.type === 'note') return event.level === 'warning' ? `warning: ${event.text}` : event.text;
    const { id, type } = event;
    if (type === 'step-started') {
      steps.set(id, { title: event.title, since: now(), done: 0, total: event.bytes });
      return undefined;
    }
    const step = steps.get(id);
    if (type === 'step-log') return undefined;
    if (type === 'step-progress') {
      if (step !== undefined) Object.assign(step, { done: event.bytes, total: event.total ?? step.total });
      return undefined;
    }
    steps.delete(id);
    const name = step?.title ?? id;
    if (type === 'step-done') return isListed ? undefined : `${name}: ${event.outcome}`;
    return isCancelled(event.error) ? undefined : `${name}: failed`;
  };
  const printed = (line: string | undefined): string | undefined => {
    if (line === undefined) return undefined;
    printedAt = now();
    return harmless(line);
  };
  return {
    take: (event) => {
      isBegun = true;
      return printed(lineOf(event));
    },
    waiting: () => {
      if (now() - printedAt < QUIET_MS) return undefined;
      const [step] = steps.values();
      if (step !== undefined) return printed(stepText(step, now(), steps.size - 1));
      return isBegun ? undefined : printed(`${title}: ${formatSeconds((now() - started) / 1000)}`);
    },
  };
}

/** `web: 4 kB of 9 kB, 20 s; 2 more in progress` */
function stepText({ title, since, done, total }: Step, now: number, others: number): string {
  const sum = total === undefined ? '' : ` of ${formatBytes(total)}`;
  const bytes = done === 0 && total === undefined ? '' : `${formatBytes(done)}${sum}, `;
  const more = others === 0 ? '' : `; ${others} more in progress`;
  return `${title}: ${bytes}${formatSeconds((now - since) / 1000)}${more}`;
}

/** Removes secrets and terminal control sequences. */
export function harmless(text: string): string {
  return visible(redact(text));
}

/** True for a canceled step, which is not a failure. */
function isCancelled(error: Error): boolean {
  return error instanceof CurlewError && error.code === 'CANCELLED';
}
