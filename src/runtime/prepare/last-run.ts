/** The last run on an install folder: its progress, hooks that survived it, and attempts. */
import { join } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import type { Report } from '../../core/events.ts';
import { nodePath } from '../../core/layout.ts';
import { actionMarker } from '../plan/action-id.ts';
import { FAILED, readJournal, unfinishedAttempts, type JournalEntry } from '../journal/journal.ts';
import { endProcesses, membersOf } from '../../platform/process/process-tree.ts';
import { readRecords, type Records } from '../node/records.ts';
import { readSavedRequest, type SavedRequest } from './saved-request.ts';

export interface LastRun {
  readonly run: string;
  /** Attempts of each unfinished action, in this run and those before it. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Undefined if it died. */
  readonly outcome: 'finished' | 'failed' | 'cancelled' | undefined;
  /** Undefined if its journal no longer exists. */
  readonly planned: Extract<JournalEntry, { type: 'planned' }> | undefined;
  /** Finished actions and the run that did them: itself, or one that it resumed. */
  readonly done: ReadonlyMap<string, string>;
  /** Failed `already_applied` checks and their messages. */
  readonly refuted: ReadonlyMap<string, string>;
  /** Digest of the variables for its next hook; undefined if there were none. */
  readonly carried: Digest | undefined;
}

/** Undefined if there was no run. `FILE_UNUSABLE` if its journal is damaged. */
export async function readLastRun(
  directory: string,
  { lastRun }: Pick<Records, 'lastRun'>,
): Promise<LastRun | undefined> {
  if (lastRun === undefined) return undefined;
  const entries = await readJournal(join(directory, nodePath.journal(lastRun)));
  return lastRunOf(lastRun, entries);
}

/** The last run and its request; undefined if there is none or it finished. */
export async function unfinishedRequest(
  directory: string,
): Promise<{ readonly run: string; readonly asked: SavedRequest | undefined } | undefined> {
  const records = await readRecords(directory);
  const last = await readLastRun(directory, records);
  if (last === undefined || last.outcome === 'finished') return undefined;
  return { run: last.run, asked: await readSavedRequest(directory, last.run) };
}

/** The state of a run from its journal. Pure. */
export function lastRunOf(run: string, entries: readonly JournalEntry[]): LastRun {
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

/** Ends hooks of the last run that survived their parent. The caller must hold the lock. */
export async function endLastRun(
  { run, attempts }: Pick<LastRun, 'run' | 'attempts'>,
  { report, graceMs }: { readonly report: Report; readonly graceMs?: number },
): Promise<void> {
  for (const action of attempts.keys()) {
    const marker = actionMarker(run, action);
    if (marker === undefined) continue;
    // No session has the ID -1: all processes with the marker are found.
    const find = (): ReturnType<typeof membersOf>['outside'] => membersOf({ session: -1, marker }).outside;
    const ended = await endProcesses(find, graceMs === undefined ? {} : { graceMs });
    if (ended.length === 0) continue;
    const text = `${action} of run ${run} was still running without its parent, and was terminated`;
    report({ type: 'note', level: 'warning', text });
  }
}
