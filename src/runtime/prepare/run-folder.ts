/** The folder of one run: journal, logs and, while hooks may run, the files that their shells read. */
import { randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { makeFolder, makeMissing, removeEmpty } from '../../platform/files/make-folder.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { type SavedRequest, REQUEST_FILE, writeSavedRequest } from './saved-request.ts';
import { isRunId, type Records } from '../plan/records.ts';
import type { HookShell } from '../hooks/hook-process.ts';
import { settingsText } from '../hooks/shell-settings.ts';
import type { ShellVariable } from '../../spec/variables.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { readJournal, type JournalEntry } from '../journal/journal.ts';
import { isRunPlan, type RunPlan } from '../plan/run-plan.ts';

export interface RunFolder extends Pick<HookShell, 'run' | 'settings' | 'carried' | 'scripts' | 'exchange'> {
  readonly path: string;
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
 * A run ID such as `20261121T101500Z-3f2a`: time, milliseconds in hex, and a random last digit, so that IDs sort by start.
 * `latest` is the greatest existing ID: if the clock was set back, the new ID is one millisecond after it.
 */
export function newRunId(now: Date, latest: string | undefined): string {
  const id = idAt(now);
  if (latest === undefined || id.slice(0, -1) > latest.slice(0, -1)) return id;
  const after = new Date(timeOf(latest) + 1);
  // A folder that a user named may contain no valid time, or the last one that an ID can represent.
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

/** IDs of the runs that an install folder still has, latest first. */
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
  /** Folder with hook-runner.sh, cap-log.sh and lib/; a run has its own copy that its hooks can read. */
  readonly scripts: string;
  readonly settings: readonly ShellVariable[];
  readonly own: readonly ShellVariable[];
  /** File with the variables for its first hook. */
  readonly carried: string | undefined;
  readonly asked: Omit<SavedRequest, 'format'>;
}

/** Creates the folders of the install folder and the folder of a new run. On an error, none of them stays. */
export async function createRunFolder(folder: RunFolder, options: CreateOptions): Promise<void> {
  const { directory, settings, own, asked } = options;
  const text = settingsText(settings, own);
  const made: string[] = [];
  try {
    for (const name of ['addons', 'packages', 'kustomize', 'assets']) {
      made.push(...(await makeFolder(join(directory, name), `prepare ${folder.path}`)));
    }
    await fillRunFolder(folder, options, made);
    await writeStateFile(folder.settings, text);
    await writeSavedRequest(folder.path, asked);
    // Without a sync, a power failure could lose the journal's folder.
    for (const path of [dirname(folder.path), directory, dirname(directory)]) await syncFolder(path);
  } catch (error) {
    // Another run may have a folder of this name.
    if (made.includes(folder.path)) await rm(folder.path, { recursive: true, force: true }).catch(() => undefined);
    await removeEmpty(made);
    throw error;
  }
}

async function fillRunFolder(
  folder: RunFolder,
  { scripts, carried }: Pick<CreateOptions, 'scripts' | 'carried'>,
  made: string[],
): Promise<void> {
  try {
    const runs = dirname(folder.path);
    if ((await makeMissing(runs, 0o700)) !== undefined) made.push(runs);
    await mkdir(folder.path, { mode: 0o700 });
    made.push(folder.path);
    await mkdir(folder.scripts, { mode: 0o700 });
    for (const name of ['hook-runner.sh', 'cap-log.sh']) await cp(join(scripts, name), join(folder.scripts, name));
    await mkdir(folder.exchange, { mode: 0o700 });
    await cp(join(scripts, 'lib'), join(folder.scripts, 'lib'), { recursive: true });
    await chmod(folder.path, 0o700);
    if (carried !== undefined) await cp(carried, folder.carried);
  } catch (error) {
    throw fileError(`prepare ${folder.path}`, error);
  }
}

/** Entries of a run's journal; none if it does not exist. `FILE_UNUSABLE` if it is damaged. */
export async function readRunJournal(directory: string, run: string): Promise<readonly JournalEntry<RunPlan>[]> {
  return readJournal(join(directory, nodePath.journal(run)), isRunPlan);
}

/** Results of the host checks before a run. */
export const PREFLIGHT_FILE = 'preflight.json';

/** Files of a run that are kept: its journal, the results of its checks, and the output of hooks. */
const KEPT = /^(?:journal\.jsonl|preflight\.json|.+\.log)$/;

/**
 * Removes files that only running hooks need: settings and carried variables may contain secrets. The saved request stays if it
 * is still `needed`.
 */
export async function dropShellFiles({ path }: Pick<RunFolder, 'path'>, needed: boolean): Promise<void> {
  for (const name of await readdir(path)) {
    if (!KEPT.test(name) && !(needed && name === REQUEST_FILE))
      await rm(join(path, name), { recursive: true, force: true });
  }
}

const KEEP_FINISHED = 10;
/** Runs that failed, were canceled or died: an operator may need to find out why. */
const KEEP_OTHERS = 20;

/** Total bytes of logs that are kept; those of the oldest runs are removed first. */
const KEEP_LOGS = 512 << 20;

/**
 * Removes the oldest run folders beyond the number kept of each kind, and those of runs that died before they started, but none
 * that the records name. From the others except `current`, removes files that only running hooks need. The caller must hold
 * the lock, and no hook of an earlier run may be running. If all logs exceed `keepLogs` bytes, removes logs of the oldest runs,
 * but never those of `current` and of the last run, which may be resumed.
 */
export async function pruneRuns(
  directory: string,
  { lastRun, applied }: Records,
  current: string | undefined,
  { keepLogs = KEEP_LOGS }: { readonly keepLogs?: number } = {},
): Promise<void> {
  let logs = 0;
  const named = new Set([lastRun, ...Object.values(applied).flatMap(({ run, previous }) => [run, previous?.run])]);
  const counts = { finished: 0, others: 0 };
  try {
    for (const run of await runsOf(directory)) {
      if (run === current) continue;
      const folder = runFolder(directory, run);
      const state = await endState(directory, run);
      const finished = state === 'finished';
      const keep = finished ? (counts.finished += 1) <= KEEP_FINISHED : (counts.others += 1) <= KEEP_OTHERS;
      if ((!keep || state === 'not started') && !named.has(run)) {
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

async function endState(directory: string, run: string): Promise<'finished' | 'not finished' | 'not started'> {
  const entries = await readRunJournal(directory, run).catch(() => undefined);
  if (entries?.length === 0) return 'not started';
  const last = entries?.at(-1);
  return last?.type === 'ended' && last.outcome === 'finished' ? 'finished' : 'not finished';
}

/** Bytes on disk, not file sizes: a log that is truncated while it is written has a hole. */
async function logFiles(folder: string): Promise<readonly { readonly path: string; readonly bytes: number }[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  // A hook may have replaced its log with anything.
  const names = entries.filter((one) => one.isFile() && one.name.endsWith('.log')).map(({ name }) => name);
  return Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return { path, bytes: (await stat(path)).blocks * 512 };
    }),
  );
}
