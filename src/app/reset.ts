/** Removes everything from this node that runs installed. */
import { removeOurFiles } from '../runtime/node/remove-files.ts';
import type { DryRun } from '../runtime/run/dry-run.ts';
import { resetRequest } from '../runtime/prepare/removal.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from '../core/context.ts';
import { commandOf } from '../node/saved-command.ts';
import { kindOf, requireFolders } from '../node/install-folder.ts';
import { planInstalled, removalOptions, runInstalled, type InstalledRun } from '../node/installed-run.ts';
import { placesOf } from '../node/target.ts';
import { RESET, type ResetRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

export interface ResetResult extends RunResult {
  readonly directory: string;
  /** Names removed from the install folder. */
  readonly removed: readonly string[];
}

/** The result if there is no install folder. */
export interface NothingToReset {
  readonly directory: string;
  readonly removed: readonly [];
}

function installedRun(request: ResetRequest, context: Context): InstalledRun {
  return {
    command: commandOf({ name: 'reset', request, cwd: context.cwd }, RESET.fields),
    requestIn: async (directory) => resetRequest(directory, removalOptions(request), context),
  };
}

/** Undefined if the install folder exists. */
export const nothingToReset = useCase(RESET, async (request, context: Context): Promise<NothingToReset | undefined> => {
  const { directory } = placesOf(request, context);
  await requireFolders(request, context);
  return (await kindOf(directory)) === 'nothing' ? { directory, removed: [] } : undefined;
});

/** Runs the hooks that remove all add-ons, then removes curlew's files from the install folder. */
export const reset = useCase(RESET, async (request, context: Context): Promise<ResetResult> => {
  return runInstalled(installedRun(request, context), request, context, async (result, directory) => ({
    ...result,
    directory,
    removed: await removeOurFiles(directory),
  }));
});

/** Plans {@link reset}; changes nothing. */
export const planReset = useCase(RESET, async (request, context: Context): Promise<DryRun> => {
  return planInstalled(installedRun(request, context), request, context);
});
