/** How far a run got, from its journal. Pure. */
import type { Digest } from '../../core/digest.ts';
import { FAILED, type JournalEntry, type PlannedEntry, type Resumable } from './journal.ts';

export interface RunProgress<Plan> {
  readonly run: string;
  /** Attempts of each unfinished action, in this run and those before it. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Undefined if it died. */
  readonly outcome: 'finished' | 'failed' | 'cancelled' | undefined;
  /** Undefined if its journal no longer exists. */
  readonly planned: PlannedEntry<Plan> | undefined;
  /** Finished actions and the run that did them: itself, or one that it resumed. */
  readonly done: ReadonlyMap<string, string>;
  /** Failed checks and their messages. */
  readonly refuted: ReadonlyMap<string, string>;
  /** Digest of the variables for its next hook; undefined if there were none. */
  readonly carried: Digest | undefined;
}

export function progressOf<Plan extends Resumable>(
  run: string,
  entries: readonly JournalEntry<Plan>[],
): RunProgress<Plan> {
  const planned = entries.find((entry) => entry.type === 'planned');
  const done = new Map(planned?.plan.continues?.done.map((one) => [one.action, one.run]));
  const refuted = new Map<string, string>();
  let carried = planned?.carried;
  for (const entry of entries) {
    if (entry.type === 'failed') refuted.set(entry.action, entry.message);
    // A hook that failed in a run that continued is tried again.
    if (entry.type !== 'done' || entry.outcome === FAILED) continue;
    done.set(entry.action, run);
    carried = entry.carried ?? carried;
  }
  const last = entries.at(-1);
  const outcome = last?.type === 'ended' ? last.outcome : undefined;
  return { run, attempts: unfinishedAttempts(entries), outcome, planned, done, refuted, carried };
}

/** Attempts of each action of a run that was started but not finished; `CURLEW_ATTEMPT` continues to count from them. */
export function unfinishedAttempts(entries: readonly JournalEntry[]): ReadonlyMap<string, number> {
  const attempts = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type === 'planned') for (const [action, attempt] of entry.earlier ?? []) attempts.set(action, attempt);
    else if (entry.type === 'started') attempts.set(entry.action, entry.attempt);
    else if (entry.type === 'done' || entry.type === 'failed') attempts.delete(entry.action);
  }
  return attempts;
}
