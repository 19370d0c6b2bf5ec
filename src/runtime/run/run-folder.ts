/** The folder of one run: journal, logs, and for as long as hooks may run the files that their shells read. */
import { randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { type Asked, ASKED_FILE, writeAsked } from './asked.ts';
import { isRunId, type Records } from '../node/records.ts';
import { settingsText, type ShellVariable } from '../hooks/settings.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { readJournal } from './journal.ts';

export interface RunFolder {
  readonly run: string;
  readonly path: string;
  readonly settings: string;
  readonly carried: string;
  readonly scripts: string;
  /** What hooks hand on; in a sandbox they can write nowhere else in the folders of runs. */
  readonly exchange: string;
}

export function runFolder(directory: string, run: string): RunFolder {
  const path = join(directory, nodePath.run(run));
  return {
    run,
    path,
    settings: join(path, 'settings.sh'),
    carried: join(path, 'carried.sh'),
    scripts: join(path, 'scripts'),
    exchange: join(path, 'hook'),
  };
}

/**
 * `20261121T101500Z-3f2a`: after the second its milliseconds, so that ids sort as runs began; the last digit is chance.
 * `latest` is the greatest of the ids that there are: with a clock that was set back the new one follows on it all the
 * same, a millisecond later.
 */
export function newRunId(now: Date, latest: string | undefined): string {
  const id = idAt(now);
  if (latest === undefined || id.slice(0, -1) > latest.slice(0, -1)) return id;
  const after = new Date(timeOf(latest) + 1);
  // A folder that was named by hand may say no time, or the last one that an id can hold.
  const next = Number.isNaN(after.getTime()) ? id : idAt(after);
  return isRunId(next) ? next : id;
}

function idAt(time: Date): string {
  const second = time.toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const rest = time.getUTCMilliseconds().toString(16).padStart(3, '0');
  return `${second}-${rest}${randomBytes(1).toString('hex').slice(1)}`;
}

function timeOf(run: string): number {
  const second = run.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-.*$/, '$1-$2-$3T$4:$5:$6Z');
  return Date.parse(second) + Number.parseInt(run.slice(-4, -1), 16);
}

/** Ids of the runs that an install folder still knows, the latest first. */
export async function runsOf(directory: string): Promise<readonly string[]> {
  const folder = join(directory, 'runs');
  try {
    const names = await readdir(folder);
    return names.filter(isRunId).toSorted().toReversed();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw fileError(`list ${folder}`, error);
  }
}

export interface CreateOptions {
  readonly directory: string;
  /** Folder with hook-runner.sh, cap-log.sh and lib/; a run keeps its own copy, where its hooks can read it. */
  readonly scripts: string;
  readonly settings: readonly ShellVariable[];
  readonly own: readonly ShellVariable[];
  /** File with the variables that its first hook begins with. */
  readonly carried: string | undefined;
  readonly asked: Omit<Asked, 'format'>;
}

/** Makes the install folder's own folders and a new run's. */
export async function createRunFolder({
  directory,
  scripts,
  settings,
  own,
  carried,
  asked,
}: CreateOptions): Promise<RunFolder> {
  const folder = runFolder(directory, newRunId(new Date(), (await runsOf(directory))[0]));
  const text = settingsText(settings, own);
  try {
    for (const name of ['addons', 'packages', 'kustomize', 'assets']) {
      await mkdir(join(directory, name), { recursive: true, mode: 0o755 });
    }
    await mkdir(join(directory, 'runs'), { recursive: true, mode: 0o700 });
    await mkdir(folder.path, { mode: 0o700 });
    await mkdir(folder.scripts, { mode: 0o700 });
    for (const name of ['hook-runner.sh', 'cap-log.sh']) await cp(join(scripts, name), join(folder.scripts, name));
    await mkdir(folder.exchange, { mode: 0o700 });
    await cp(join(scripts, 'lib'), join(folder.scripts, 'lib'), { recursive: true });
    await chmod(folder.path, 0o700);
    if (carried !== undefined) await cp(carried, folder.carried);
  } catch (error) {
    throw fileError(`prepare ${folder.path}`, error);
  }
  await writeStateFile(folder.settings, text);
  await writeAsked(folder.path, asked);
  // A journal that cannot be found after a power cut would be none.
  for (const path of [dirname(folder.path), directory, dirname(directory)]) await syncFolder(path);
  return folder;
}

/** How the checks of the machine came out before a run. */
export const PREFLIGHT_FILE = 'preflight.json';

/** What stays of a run: its journal, how its checks came out, and what hooks printed. */
const KEPT = /^(?:journal\.jsonl|preflight\.json|.+\.log)$/;

/**
 * Removes what only running hooks need: settings and carried variables may hold secrets. What the run was asked for stays
 * when it is still `needed`.
 */
export async function dropShellFiles({ path }: Pick<RunFolder, 'path'>, needed: boolean): Promise<void> {
  for (const name of await readdir(path)) {
    if (!KEPT.test(name) && !(needed && name === ASKED_FILE))
      await rm(join(path, name), { recursive: true, force: true });
  }
}

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
