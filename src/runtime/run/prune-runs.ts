/** Which folders of earlier runs are kept. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { readJournal } from './journal.ts';
import type { Records } from '../node/records.ts';
import { dropShellFiles, runFolder, runsOf } from './run-folder.ts';

const KEEP_FINISHED = 10;
/** Runs that failed, were cancelled or died: somebody may still have to find out why. */
const KEEP_OTHERS = 20;

/** Bytes of logs that are kept in all; those of the oldest runs go first. */
const KEEP_LOGS = 512 << 20;

/**
 * Removes the oldest run folders beyond the number kept of each kind, but none that the records name, and those of runs
 * that died before they began; from those that stay, what only running hooks need, but not from `current`. Call it with
 * the lock held, and no hook of an earlier run alive. Where all logs take up more than `keepLogs` bytes, runs keep their
 * journals and lose their logs, the oldest first, but never `current` and the last one, which may be resumed.
 */
export async function pruneRuns(
  directory: string,
  { lastRun, applied }: Records,
  current: string | undefined,
  { keepLogs = KEEP_LOGS }: { readonly keepLogs?: number } = {},
): Promise<void> {
  let logs = 0;
  const named = new Set([lastRun, ...Object.values(applied).flatMap(({ run, previous }) => [run, previous?.run])]);
  const seen = { finished: 0, others: 0 };
  try {
    for (const run of await runsOf(directory)) {
      if (run === current) continue;
      const folder = runFolder(directory, run);
      const how = await howItEnded(directory, run);
      const finished = how === 'finished';
      const keep = finished ? (seen.finished += 1) <= KEEP_FINISHED : (seen.others += 1) <= KEEP_OTHERS;
      if ((!keep || how === 'never began') && !named.has(run)) {
        await rm(folder.path, { recursive: true, force: true });
        continue;
      }
      await dropShellFiles(folder, named.has(run));
      const own = await logFiles(folder.path);
      logs += own.reduce((sum, { bytes }) => sum + bytes, 0);
      if (logs > keepLogs && run !== lastRun) await Promise.all(own.map(async ({ path }) => rm(path, { force: true })));
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

/** Bytes are those on the disk: a log that is cut while it is written has a hole. */
async function logFiles(folder: string): Promise<readonly { readonly path: string; readonly bytes: number }[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  // A hook may have put anything in the place of its log.
  const names = entries.filter((one) => one.isFile() && one.name.endsWith('.log')).map(({ name }) => name);
  return Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return { path, bytes: (await stat(path)).blocks * 512 };
    }),
  );
}
