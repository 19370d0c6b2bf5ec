/** Removes everything from this node that runs installed. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { KUBERNETES } from '../runtime/plan/hooks.ts';
import { removeOurFiles } from '../runtime/node/remove-files.ts';
import { resetRequest } from '../runtime/prepare/removal.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from '../core/context.ts';
import { savedCommandOf } from '../steps/node/saved-command.ts';
import { kindOf, requireFolders } from '../steps/node/install-folder.ts';
import { planInstalled, removalOptions, runInstalled, type InstalledRun } from '../steps/node/installed-run.ts';
import { placesOf } from '../steps/node/target.ts';
import { RESET, type ResetRequest } from '../requests/node.ts';
import type { DryRun } from '../runtime/run/dry-run.ts';
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

/** Files of a node that the kubernetes package has made: nothing else writes both. */
const NODE_FILES = ['curlew', 'kubelet.conf'];

/**
 * `NOT_FOUND` if the kubernetes package has made this machine a node, and it is not among what a reset removes: an earlier version of
 * curlew did not record what had begun, and the node may have another install folder.
 */
export async function requireNoNode(
  { directory, removed }: { readonly directory: string; readonly removed: readonly string[] },
  kubernetes = '/etc/kubernetes',
): Promise<void> {
  if (removed.includes(KUBERNETES)) return;
  const found = await Promise.allSettled(NODE_FILES.map(async (name) => access(join(kubernetes, name))));
  if (found.some(({ status }) => status === 'rejected')) return;
  throw new CurlewError(
    'NOT_FOUND',
    `cannot remove Kubernetes: ${directory} does not record it, and ${kubernetes} has a node`,
    {
      hint: 'name the folder of its installation with --install-dir. If there is none, run kubeadm reset --force and systemctl disable --now kubelet first; --keep-going leaves Kubernetes as it is',
    },
  );
}

function installedRun(request: ResetRequest, context: Context): InstalledRun {
  return {
    command: savedCommandOf({ name: 'reset', request, cwd: context.cwd }, RESET.fields),
    requestIn: async (directory) => {
      const whole = await resetRequest(directory, removalOptions(request), context);
      const removed = [...whole.removal.packages.map(({ source }) => source.ref.name), ...whole.removal.forgotten];
      if (mayHaveNode(request)) await requireNoNode({ directory, removed });
      return whole;
    },
  };
}

/** A trial has none. */
function mayHaveNode({ root, keepGoing }: ResetRequest): boolean {
  return root === undefined && keepGoing !== true;
}

/** Undefined if the install folder exists. Throws what {@link requireNoNode} throws. */
export const nothingToReset = useCase(RESET, async (request, context): Promise<NothingToReset | undefined> => {
  const { directory } = placesOf(request, context);
  await requireFolders(request, context);
  if ((await kindOf(directory)) !== 'nothing') return undefined;
  if (mayHaveNode(request)) await requireNoNode({ directory, removed: [] });
  return { directory, removed: [] };
});

/** Runs the hooks that remove all add-ons, then removes curlew's files from the install folder. */
export const reset = useCase(RESET, async (request, context): Promise<ResetResult> => {
  return runInstalled(installedRun(request, context), request, context, async (result, directory) => ({
    ...result,
    directory,
    removed: await removeOurFiles(directory),
  }));
});

/** Plans {@link reset}; changes nothing. */
export const planReset = useCase(RESET, async (request, context): Promise<DryRun> =>
  planInstalled(installedRun(request, context), request, context),
);
