/** The last run on an install folder: its progress, hooks that survived it, and attempts. */
import type { Report } from '../../core/events.ts';
import { actionMarker } from '../plan/action-id.ts';
import { progressOf } from '../journal/progress.ts';
import type { LastRun } from '../plan/continue-plan.ts';
import { readRunJournal } from './run-folder.ts';
import { endProcesses, membersOf } from '../../platform/process/process-tree.ts';
import { readRecords } from '../node/records.ts';
import type { Records } from '../plan/records.ts';
import { readSavedRequest, type SavedRequest } from './saved-request.ts';

/** Undefined if there was no run. `FILE_UNUSABLE` if its journal is damaged. */
export async function readLastRun(
  directory: string,
  { lastRun }: Pick<Records, 'lastRun'>,
): Promise<LastRun | undefined> {
  if (lastRun === undefined) return undefined;
  return progressOf(lastRun, await readRunJournal(directory, lastRun));
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

/** Ends hooks of the last run that survived their parent. The caller must hold the lock. */
export async function endHooks(
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
