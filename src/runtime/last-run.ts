/** What the last run over an install folder left: hooks that outlived it, tries to be counted. */
import { join } from 'node:path';
import type { Report } from '../core/events.ts';
import { nodePath } from '../core/layout.ts';
import { readJournal, unfinishedAttempts } from './journal.ts';
import { endProcesses, membersOf } from './process-tree.ts';
import type { Records } from './records.ts';

/** How often each action was begun by the last run, and those before it, without being done. */
export async function earlierAttempts(
  directory: string,
  { lastRun }: Pick<Records, 'lastRun'>,
): Promise<ReadonlyMap<string, number>> {
  if (lastRun === undefined) return new Map();
  return unfinishedAttempts(await readJournal(join(directory, nodePath.journal(lastRun))));
}

/** Ends hooks of the last run that still run although their parent has died. Call it with the lock held. */
export async function endLastRun(
  { lastRun }: Pick<Records, 'lastRun'>,
  attempts: ReadonlyMap<string, number>,
  { report, graceMs }: { readonly report: Report; readonly graceMs?: number },
): Promise<void> {
  if (lastRun === undefined) return;
  for (const action of attempts.keys()) {
    const marker = `CURLEW_HOOK=${lastRun}/${action.replace(/^hook /, '')}`;
    // No session is -1: whatever carries the marker is found.
    const find = (): ReturnType<typeof membersOf>['outside'] => membersOf({ session: -1, marker }).outside;
    const ended = await endProcesses(find, graceMs === undefined ? {} : { graceMs });
    if (ended.length === 0) continue;
    const text = `${action} of run ${lastRun} was still at work without its parent, and was ended`;
    report({ type: 'note', level: 'warning', text });
  }
}
