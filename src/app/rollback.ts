/** Rolls an add-on back to its state before the last change. */
import { unfinishedRequest } from '../runtime/prepare/last-run.ts';
import { rollbackRequest } from '../runtime/prepare/rollback.ts';
import type { DryRun } from '../runtime/run/dry-run.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from '../core/context.ts';
import { commandOf, parseCommand } from '../node/saved-command.ts';
import { planInstalled, runInstalled, type InstalledRun } from '../node/installed-run.ts';
import { ROLLBACK, type RollbackRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

function installedRun(request: RollbackRequest, { cwd, report, signal }: Context): InstalledRun {
  const { addon } = request;
  const command = commandOf({ name: 'rollback', request, cwd }, ROLLBACK.fields);
  const wasThis = async (directory: string): Promise<boolean> => {
    const last = parseCommand((await unfinishedRequest(directory))?.asked?.command, ROLLBACK.fields);
    return last?.name === 'rollback' && last.request.addon === addon;
  };
  const requestIn = async (directory: string): ReturnType<typeof rollbackRequest> =>
    rollbackRequest(directory, addon, { isAgain: async () => wasThis(directory), report, signal });
  return { command, requestIn };
}

/**
 * Installs the package and the settings of the add-on before its last change. `NOT_FOUND` if there is no former state.
 */
export const rollback = useCase(ROLLBACK, async (request, context: Context): Promise<RunResult> => {
  return runInstalled(installedRun(request, context), request, context, (result) => result);
});

/** Plans {@link rollback}; changes nothing. */
export const planRollback = useCase(ROLLBACK, async (request, context: Context): Promise<DryRun> => {
  return planInstalled(installedRun(request, context), request, context);
});
