/** Removes add-ons from this node and from the cluster. */
import type { DryRun } from '../runtime/run/dry-run.ts';
import { uninstallRequest } from '../runtime/prepare/removal.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from '../core/context.ts';
import { commandOf, type Shape } from './node/saved-command.ts';
import {
  planKept,
  REMOVAL_FIELDS,
  removalOptions,
  runKept,
  type KeptRun,
  type RemovalRequest,
} from './node/kept-run.ts';
import { usage } from './node/target.ts';

export interface UninstallRequest extends RemovalRequest {
  /** Names of add-ons, one or more. */
  readonly addons: readonly string[];
  /** Also remove images that no other add-on of this node has. */
  readonly pruneImages?: boolean | undefined;
}

export const UNINSTALL: Shape<UninstallRequest> = {
  fields: { ...REMOVAL_FIELDS, addons: 'texts', pruneImages: 'flag' },
  operands: 'addons',
  needsOperands: true,
};

function keptRun(request: UninstallRequest, context: Context): KeptRun {
  if (request.pruneImages === true && request.root !== undefined)
    throw usage('--prune-images cannot be used with --root: the container runtime of this machine must not be changed');
  const names = [...new Set(request.addons)];
  return {
    command: commandOf({ name: 'uninstall', request, cwd: context.cwd }, UNINSTALL),
    requestIn: async (directory) => uninstallRequest(directory, names, removalOptions(request), context),
  };
}

/** Removes the add-ons from this node, and from the cluster if they were installed from it. */
export async function uninstall(request: UninstallRequest, context: Context): Promise<RunResult> {
  return runKept(keptRun(request, context), request, context, (result) => result);
}

/** Plans {@link uninstall}; changes nothing. */
export async function planUninstall(request: UninstallRequest, context: Context): Promise<DryRun> {
  return planKept(keptRun(request, context), request, context);
}
