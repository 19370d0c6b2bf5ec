/** What the last run over an install folder left: how far it came, hooks that outlived it, tries to be counted. */
import { join } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import type { Report } from '../../core/events.ts';
import { nodePath } from '../../core/layout.ts';
import { FAILED, readJournal, unfinishedAttempts, type JournalEntry } from './journal.ts';
import { endProcesses, membersOf } from '../../platform/process/process-tree.ts';
import type { Records } from '../node/records.ts';

export interface LastRun {
  readonly run: string;
  /** How often each action was begun, by it and those before it, without being done. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Undefined when it died. */
  readonly outcome: 'finished' | 'failed' | 'cancelled' | undefined;
  /** Undefined when there is no journal any more. */
  readonly planned: Extract<JournalEntry, { type: 'planned' }> | undefined;
  /** Actions that are done, and by which run: itself, or one that it went on from. */
  readonly done: ReadonlyMap<string, string>;
  /** Checks of what is applied already that failed, and how. */
  readonly refuted: ReadonlyMap<string, string>;
  /** Of the variables that its next hook would have begun with; undefined when there were none. */
  readonly carried: Digest | undefined;
}

/** A damaged journal is `FILE_UNUSABLE`. */
export async function readLastRun(
  directory: string,
  { lastRun }: Pick<Records, 'lastRun'>,
): Promise<LastRun | undefined> {
  if (lastRun === undefined) return undefined;
  const entries = await readJournal(join(directory, nodePath.journal(lastRun)));
  return lastRunOf(lastRun, entries);
}

/** What the entries of a run's journal come to. Pure. */
export function lastRunOf(run: string, entries: readonly JournalEntry[]): LastRun {
  const planned = entries.find((entry) => entry.type === 'planned');
  const done = new Map(planned?.plan.continues?.done.map((one) => [one.action, one.run]));
  const refuted = new Map<string, string>();
  let carried = planned?.carried;
  for (const entry of entries) {
    if (entry.type === 'failed') refuted.set(entry.action, entry.message);
    // A hook that may fail, and did, is tried again.
    if (entry.type !== 'done' || entry.outcome === FAILED) continue;
    done.set(entry.action, run);
    carried = entry.carried ?? carried;
  }
  const last = entries.at(-1);
  const outcome = last?.type === 'ended' ? last.outcome : undefined;
  return { run, attempts: unfinishedAttempts(entries), outcome, planned, done, refuted, carried };
}

/** Ends hooks of the last run that still run although their parent has died. Call it with the lock held. */
export async function endLastRun(
  { run, attempts }: Pick<LastRun, 'run' | 'attempts'>,
  { report, graceMs }: { readonly report: Report; readonly graceMs?: number },
): Promise<void> {
  for (const action of attempts.keys()) {
    const marker = `CURLEW_HOOK=${run}/${action.replace(/^hook /, '')}`;
    // No session is -1: whatever carries the marker is found.
    const find = (): ReturnType<typeof membersOf>['outside'] => membersOf({ session: -1, marker }).outside;
    const ended = await endProcesses(find, graceMs === undefined ? {} : { graceMs });
    if (ended.length === 0) continue;
    const text = `${action} of run ${run} was still at work without its parent, and was ended`;
    report({ type: 'note', level: 'warning', text });
  }
}
