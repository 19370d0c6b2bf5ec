/** Removes add-ons from this node and from the cluster. */
import { uninstallRequest } from '../runtime/prepare/removal.ts';
import type { Context } from '../core/context.ts';
import { savedCommandOf } from '../steps/node/saved-command.ts';
import { planInstalled, removalOptions, runInstalled, type InstalledRun } from '../steps/node/installed-run.ts';
import { usage } from '../steps/node/target.ts';
import { UNINSTALL, type UninstallRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import type { DryRun } from '../runtime/run/dry-run.ts';
import type { RunResult } from '../runtime/run/run-result.ts';

function installedRun(request: UninstallRequest, context: Context): InstalledRun {
  if (request.pruneImages === true && request.root !== undefined)
    throw usage('--prune-images cannot be used with --root: the container runtime of this machine must not be changed');
  const names = [...new Set(request.addons)];
  return {
    command: savedCommandOf({ name: 'uninstall', request, cwd: context.cwd }, UNINSTALL.fields),
    requestIn: async (directory) => uninstallRequest(directory, names, removalOptions(request), context),
  };
}

/** Removes the add-ons from this node, and from the cluster if they were installed from it. */
export const uninstall = useCase(UNINSTALL, async (request, context): Promise<RunResult> =>
  runInstalled(installedRun(request, context), request, context, (result) => result),
);

/** Plans {@link uninstall}; changes nothing. */
export const planUninstall = useCase(UNINSTALL, async (request, context): Promise<DryRun> =>
  planInstalled(installedRun(request, context), request, context),
);
