/** Output of the hooks of a run. */
import { CurlewError } from '../core/errors.ts';
import { listRunLogs, readHookLogs, type HookLog, type RunSummary } from '../runtime/history/hook-logs.ts';
import { LINES } from '../runtime/hooks/log-tail.ts';
import type { Context } from '../core/context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';

export interface LogsRequest extends FolderRequest {
  /** The add-on whose logs are read; by default the runs are listed. */
  readonly addon?: string | undefined;
  /** Only this hook of the add-on: a hook such as `install`, or the name of a function. */
  readonly hook?: string | undefined;
  /** ID of the run; default: the latest one with a log of the add-on. */
  readonly run?: string | undefined;
  /** Number of last lines of each log; default: {@link LINES}. */
  readonly lines?: number | undefined;
}

export interface Logs {
  /** The latest first. */
  readonly runs?: readonly RunSummary[];
  readonly logs?: readonly HookLog[];
}

/** The kept runs, or the last lines of an add-on's logs. `NOT_FOUND` if there are none. */
export async function logs(request: LogsRequest, context: Pick<Context, 'cwd'>): Promise<Logs> {
  const { addon, hook, run, lines = LINES } = request;
  const directory = folderOf(request, context);
  if (addon !== undefined) return { logs: await readHookLogs(directory, { run, addon, hook, lines }) };
  const runs = await listRunLogs(directory);
  if (run === undefined) return { runs };
  const found = runs.filter((one) => one.run === run);
  if (found.length > 0) return { runs: found };
  throw new CurlewError('NOT_FOUND', `${directory} has no run ${JSON.stringify(run.slice(0, 60))}`, {
    hint: 'curlew logs lists the runs',
  });
}
