/** Output of the hooks of a run. */
import { CurlewError } from '../core/errors.ts';
import { listRunLogs, readHookLogs, type HookLog, type RunSummary } from '../runtime/history/hook-logs.ts';
import type { Context } from '../core/context.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { LINES, LOGS } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

export interface Logs {
  /** The latest first. */
  readonly runs?: readonly RunSummary[];
  readonly logs?: readonly HookLog[];
}

/** The kept runs, or the last lines of an add-on's logs. `NOT_FOUND` if there are none. */
export const logs = useCase(LOGS, async (request, context: Pick<Context, 'cwd'>): Promise<Logs> => {
  const { addon, hook, run, lines = LINES } = request;
  const directory = await installedFolder(request, context);
  if (addon !== undefined) return { logs: await readHookLogs(directory, { run, addon, hook, lines }) };
  const runs = await listRunLogs(directory);
  if (run === undefined) return { runs };
  const matching = runs.filter((one) => one.run === run);
  if (matching.length > 0) return { runs: matching };
  throw new CurlewError('NOT_FOUND', `${directory} has no run ${JSON.stringify(run.slice(0, 60))}`, {
    hint: 'curlew logs lists the runs',
  });
});
