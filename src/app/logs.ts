/** What the hooks of a run printed. */
import { CurlewError } from '../core/errors.ts';
import { listRunLogs, readHookLogs, type HookLog, type RunSummary } from '../runtime/hooks/hook-logs.ts';
import type { Context } from './context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';

/** Lines of a log where nobody says how many. */
export const LINES = 200;

export interface LogsRequest extends FolderRequest {
  /** Its hooks' logs are read; absent: the runs are listed. */
  readonly addon?: string | undefined;
  /** Only this hook of the add-on: `install`, or the name of a function. */
  readonly hook?: string | undefined;
  /** The run to look at; the latest that has any log of the add-on when absent. */
  readonly run?: string | undefined;
  /** How many of the last lines of each log; {@link LINES} when absent. */
  readonly lines?: number | undefined;
}

export interface Logs {
  /** The latest first. */
  readonly runs?: readonly RunSummary[];
  readonly logs?: readonly HookLog[];
}

/** The runs that are known, or the ends of an add-on's logs. `NOT_FOUND` for what is not there. */
export async function logs(request: LogsRequest, context: Pick<Context, 'cwd'>): Promise<Logs> {
  const { addon, hook, run, lines = LINES } = request;
  const directory = folderOf(request, context);
  if (addon !== undefined) return { logs: await readHookLogs(directory, { run, addon, hook, lines }) };
  const runs = await listRunLogs(directory);
  if (run === undefined) return { runs };
  const found = runs.filter((one) => one.run === run);
  if (found.length > 0) return { runs: found };
  throw new CurlewError('NOT_FOUND', `${directory} knows no run ${JSON.stringify(run.slice(0, 60))}`, {
    hint: 'curlew logs lists the runs',
  });
}
