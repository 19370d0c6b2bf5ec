import type { Report } from './events.ts';

/** Options of a function that stops when its signal is aborted. */
export interface Cancellable {
  readonly signal: AbortSignal;
}

/** Options of such a function that also reports what it does. */
export interface Reporting extends Cancellable {
  readonly report: Report;
}
