/** Which folders of earlier runs are kept. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError } from '../core/errors.ts';
import { nodePath } from '../core/layout.ts';
import { readJournal } from './journal.ts';
import type { Records } from './records.ts';
import { dropShellFiles, runFolder, runsOf } from './run-folder.ts';

const KEEP_FINISHED = 10;
/** Runs that failed, were cancelled or died: somebody may still have to find out why. */
const KEEP_OTHERS = 20;

/**
 * Removes the oldest run folders beyond the number kept of each kind, but none that the records name, and those of runs
 * that died before they began; from those that stay, what only running hooks need, but not from `current`. Call it with
 * the lock held, and no hook of an earlier run alive.
 */
export async function pruneRuns(
  directory: string,
  { lastRun, applied }: Records,
  current: string | undefined,
): Promise<void> {
  const named = new Set([lastRun, ...Object.values(applied).flatMap(({ run, previous }) => [run, previous?.run])]);
  const seen = { finished: 0, others: 0 };
  try {
    for (const run of await runsOf(directory)) {
      if (run === current) continue;
      const folder = runFolder(directory, run);
      const how = await howItEnded(directory, run);
      const finished = how === 'finished';
      const keep = finished ? (seen.finished += 1) <= KEEP_FINISHED : (seen.others += 1) <= KEEP_OTHERS;
      if ((keep && how !== 'never began') || named.has(run)) await dropShellFiles(folder, named.has(run));
      else await rm(folder.path, { recursive: true, force: true });
    }
  } catch (error) {
    throw fileError(`remove old runs of ${directory}`, error);
  }
}

async function howItEnded(directory: string, run: string): Promise<'finished' | 'not finished' | 'never began'> {
  const entries = await readJournal(join(directory, nodePath.journal(run))).catch(() => undefined);
  if (entries?.length === 0) return 'never began';
  const last = entries?.at(-1);
  return last?.type === 'ended' && last.outcome === 'finished' ? 'finished' : 'not finished';
}
