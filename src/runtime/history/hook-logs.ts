/** Logs of hooks of earlier runs: the list, and their last lines. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AddonVersion } from '../../core/ref.ts';
import { CurlewError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { nearest } from '../../core/nearest.ts';
import { readable, readHistory, readRun, type RunHistory } from './history.ts';
import { isRunId } from '../plan/records.ts';
import type { PlannedAddon } from '../plan/run-plan.ts';
import { endOfFile, type FileEnd } from '../hooks/log-tail.ts';

export interface RunSummary extends Pick<RunHistory, 'run' | 'kind' | 'began' | 'ended' | 'state' | 'message'> {
  readonly addons: readonly string[];
  /** Its changes, or those that it would have made before it failed, in the order of the run. */
  readonly changes: readonly RunChange[];
  /** Hooks with a log, in the order of the run. */
  readonly logs: readonly { readonly hook: string; readonly bytes: number }[];
}

/** One add-on of a run that was not applied already. */
export interface RunChange extends AddonVersion {
  /** The version that it replaced; absent if there was none, and if the run did not record it. */
  readonly replaces?: string | undefined;
  readonly mode: Exclude<PlannedAddon['mode'], 'already applied'>;
}

export interface HookLog extends FileEnd {
  readonly run: string;
  /** Undefined for the log of the look-up, which sources all add-ons. */
  readonly addon: string | undefined;
  /** The function that was called. */
  readonly hook: string;
  readonly path: string;
}

const LOG = '.log';

/** The kept runs, latest first. Throws `FILE_UNUSABLE` if a journal is damaged. */
export async function listRunLogs(directory: string): Promise<readonly RunSummary[]> {
  const { runs, records, busy } = await readHistory(directory);
  const rows: RunSummary[] = [];
  for (const run of runs) {
    rows.push(await summarize(directory, run, busy !== undefined && run === records.lastRun));
  }
  return rows;
}

async function summarize(directory: string, run: string, busy: boolean): Promise<RunSummary> {
  const { actions, plan, ...summary } = await readRun(directory, run, { busy });
  const order = actions.flatMap((action) => action.function ?? []);
  const files = await logsOf(directory, run);
  const logs = files.toSorted((a, b) => order.indexOf(a.hook) - order.indexOf(b.hook));
  const addons = plan?.addons ?? [];
  return { ...summary, addons: addons.map(({ ref }) => ref.name), changes: addons.flatMap(changeOf), logs };
}

function changeOf({ ref: { name, version }, replaces, mode }: PlannedAddon): readonly RunChange[] {
  return mode === 'already applied' ? [] : [{ name, version, ...(replaces === undefined ? {} : { replaces }), mode }];
}

async function logsOf(directory: string, run: string): Promise<RunSummary['logs']> {
  const folder = join(directory, nodePath.run(run));
  return readable(directory, async () => {
    const entries = await readdir(folder, { withFileTypes: true });
    // A hook may have replaced its log with anything.
    const rows = entries
      .filter((one) => one.isFile() && one.name.endsWith(LOG))
      .map(async ({ name }) => {
        const { size } = await stat(join(folder, name));
        return { hook: name.slice(0, -LOG.length), bytes: size };
      });
    return Promise.all(rows);
  });
}

export interface LogQuery {
  /** ID of a run; undefined for the latest one with such a log. */
  readonly run: string | undefined;
  /** Name of an add-on, or of a log in the list. */
  readonly addon: string;
  /** Name of a hook such as `install` or `post_init`, or of its function; all of the add-on's when undefined. */
  readonly hook: string | undefined;
  /** At most so many lines of each. */
  readonly lines: number;
}

/** `NOT_FOUND` if the run, add-on, hook or log does not exist. */
export async function readHookLogs(directory: string, query: LogQuery): Promise<readonly HookLog[]> {
  const { runs, records, busy } = await readHistory(directory);
  const { run: requested, addon } = query;
  if (requested !== undefined && !runs.includes(requested)) {
    throw unknownRun(directory, requested, runs);
  }
  if (isRunId(addon)) {
    if (!runs.includes(addon)) throw unknownRun(directory, addon, runs);
    const hint = `curlew logs --run ${addon} lists its logs`;
    throw new CurlewError('NOT_FOUND', `${addon} is a run, not an add-on`, { hint });
  }
  const known = new Set<string>();
  const hooks = new Set<string>();
  const functions = new Set<string>();
  for (const run of requested === undefined ? runs : [requested]) {
    const history = await readRun(directory, run, { busy: busy !== undefined && run === records.lastRun });
    for (const { ref } of history.plan?.addons ?? []) known.add(ref.name);
    const logs = await matching(directory, history, query);
    if (logs.length > 0) return logs;
    for (const action of history.actions) {
      if (action.addon !== addon || action.function === undefined) continue;
      hooks.add(action.hook ?? action.function);
      functions.add(action.function);
    }
  }
  const where = requested === undefined ? directory : `run ${requested}`;
  if (!known.has(addon)) throw notFound(`no log of ${JSON.stringify(addon.slice(0, 120))} in ${where}`, addon, known);
  const { hook } = query;
  if (hook === undefined) throw notFound(`no hook of ${addon} has run in ${where}`, '', []);
  throw notFound(`no log of ${addon} ${JSON.stringify(hook.slice(0, 120))} in ${where}`, hook, hooks, functions);
}

async function matching(
  directory: string,
  { run, actions }: RunHistory,
  { addon, hook, lines }: LogQuery,
): Promise<readonly HookLog[]> {
  const existing = new Set((await logsOf(directory, run)).map((one) => one.hook));
  const called = actions.filter((action) => action.addon === addon && action.function !== undefined);
  const own = called.flatMap((action) => action.function ?? []);
  const matches = called.filter((action) => hook === undefined || action.function === hook || action.hook === hook);
  const names = matches.flatMap((action) => action.function ?? []);
  // The look-up of all add-ons belongs to no single add-on.
  const others = own.length === 0 && hook === undefined ? [addon] : [];
  const files = [...new Set([...names, ...others])].filter((name) => existing.has(name));
  const read = files.map(async (name): Promise<HookLog> => {
    const path = join(directory, nodePath.run(run), `${name}${LOG}`);
    const end = await readable(directory, async () => endOfFile(path, lines));
    return { run, addon: own.includes(name) ? addon : undefined, hook: name, path, ...end };
  });
  return Promise.all(read);
}

function unknownRun(directory: string, run: string, runs: readonly string[]): CurlewError {
  return notFound(`${directory} has no run ${JSON.stringify(run.slice(0, 60))}`, run, runs);
}

/** `others` are further valid names that are not listed. */
function notFound(what: string, name: string, known: Iterable<string>, others: Iterable<string> = []): CurlewError {
  const all = [...known];
  const near = nearest(name, [...all, ...others]);
  const list = all.length === 0 ? 'curlew logs lists the runs' : `known: ${all.slice(0, 20).join(', ')}`;
  return new CurlewError('NOT_FOUND', what, { hint: near === undefined ? list : `did you mean "${near}"?` });
}
