/** Runs that use packages on the node: rollback, uninstall and reset. */
import { canceledOr } from '../../core/errors.ts';
import type { DryRun } from '../../runtime/run/dry-run.ts';
import { execute } from '../../runtime/run/execute.ts';
import { readable } from '../../runtime/history/history.ts';
import { plainPlace, type NodePlace } from '../../runtime/node/node-place.ts';
import { prepare, viewRun } from '../../runtime/prepare/prepare.ts';
import type { RemovalOptions } from '../../runtime/prepare/removal.ts';
import type { RunRequest } from '../../runtime/prepare/request.ts';
import type { RunResult } from '../../runtime/run/run-result.ts';
import type { Context } from '../../core/context.ts';
import { ownScripts } from '../../own/scripts.ts';
import { toolVersion } from '../../own/version.ts';
import { clusterOfKept } from './cluster.ts';
import { installedFolder } from './install-folder.ts';
import { findTrialCluster } from './trial-cluster.ts';
import { hookEnv, hookLimitOf, placeOf, placesOf, nodeTargetOf, whySkipImages } from './target.ts';
import type { KeptRequest, RemovalRequest } from '../../requests/node.ts';

export function removalOptions(
  request: RemovalRequest & { readonly pruneImages?: boolean | undefined },
): RemovalOptions {
  return {
    keepData: request.keepData === true,
    keepGoing: request.keepGoing === true,
    pruneImages: request.pruneImages === true,
  };
}

/** A run that is mostly determined by the state of the node. */
export interface InstalledRun {
  /** JSON that is saved with the run. */
  readonly command: unknown;
  /** The request for an install folder. */
  readonly requestIn: (
    directory: string,
  ) => Promise<
    Pick<RunRequest, 'kind' | 'packages' | 'removal' | 'variables' | 'reapply' | 'allowDowngrade' | 'keepsPrevious'>
  >;
}

async function wholeRequest(
  { command, requestIn }: InstalledRun,
  { directory, place }: { readonly directory: string; readonly place: () => NodePlace | Promise<NodePlace> },
  request: KeptRequest,
  context: Context,
): Promise<RunRequest> {
  const saved = await requestIn(directory);
  return {
    ...saved,
    scripts: ownScripts(),
    env: hookEnv(request, context),
    // Images are loaded, because kubelet may have removed those of a former version.
    skipImages: whySkipImages(request),
    hookLimit: hookLimitOf(request),
    command,
    cluster: clusterOfKept(saved, request, context),
    place: await place(),
  };
}

const NOT_BEGUN = 'nothing has changed on this node: run the same command again';
/** For what follows the hooks of a run. */
export const HOOKS_DONE = 'all hooks have run: run the same command again to complete the rest';

/**
 * Runs a use case that changes the node. If it is canceled, the error has a hint: `left`, which is for work that has changed nothing,
 * unless a part of it has said what it has left.
 */
export async function changing<Result>(
  { signal }: Pick<Context, 'signal'>,
  work: () => Result | Promise<Result>,
  left = NOT_BEGUN,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw canceledOr(error, signal, left);
  }
}

/** `after` completes the result while the node is still locked. */
export async function runInstalled<Result>(
  run: InstalledRun,
  request: KeptRequest,
  context: Context,
  after: (result: RunResult, directory: string) => Result | Promise<Result>,
): Promise<Result> {
  return changing(context, async () => performInstalled(run, request, context, after));
}

async function performInstalled<Result>(
  run: InstalledRun,
  request: KeptRequest,
  context: Context,
  after: (result: RunResult, directory: string) => Result | Promise<Result>,
): Promise<Result> {
  const target = nodeTargetOf(request, context);
  const { directory } = target;
  await installedFolder(request, context);
  const cluster = await findTrialCluster(request, context);
  const place = async (): Promise<NodePlace> => ({ ...(await placeOf(target, context)), cluster: cluster?.facts });
  const whole = await wholeRequest(run, { directory, place }, request, context);
  await using prepared = await prepare(whole, context);
  await using _kubeconfig = await cluster?.writeIn(directory);
  const { report, ask, signal } = context;
  const result = await execute(prepared, { report, ask, signal });
  return await changing(context, () => after(result, directory), HOOKS_DONE);
}

/** Plans the run; changes nothing. */
export async function planInstalled(run: InstalledRun, request: KeptRequest, context: Context): Promise<DryRun> {
  const { directory } = placesOf(request, context);
  await installedFolder(request, context);
  const { report, signal } = context;
  const cluster = await findTrialCluster(request, context, { isPlan: true });
  const view = await readable(directory, async () => {
    const place = (): NodePlace => ({ ...plainPlace(directory), cluster: cluster?.facts });
    return viewRun(await wholeRequest(run, { directory, place }, request, context), context);
  });
  for (const text of view.view.notes) report({ type: 'note', level: 'warning', text });
  const { dryRun } = await import('../../runtime/run/dry-run.ts');
  return dryRun(view, { words: {}, tool: toolVersion(), out: undefined, report, signal });
}
