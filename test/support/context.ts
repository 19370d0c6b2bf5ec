/** Arguments for functions that report progress and can be aborted, for tests in which neither matters. */
import type { Report } from '../../src/core/events.ts';

/** Discards every event. */
export const noReport: Report = () => undefined;

/** A signal that is never aborted. */
export const never: AbortSignal = new AbortController().signal;
