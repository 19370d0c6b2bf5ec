/** Brings the machines of a cluster to what its file says, over SSH. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import type { Phase } from '../machine/cluster.ts';
import { readHosts } from '../machine/run/cluster-file.ts';
import { planOf, type Done, type PlannedCluster } from '../machine/run/planned-cluster.ts';
import { readSaved, requireSameCluster, withinPlan } from '../machine/run/saved-plan.ts';
import { followPlan, previewPlan, type AppliedCluster, type Plan } from '../machine/run/follow-plan.ts';
import { CLUSTER_APPLY } from '../requests/cluster.ts';
import type { ChannelFiles } from '../steps/open/channel-files.ts';
import { channelsOf, moveAddon, openAddons } from './cluster-addons.ts';
import { bundleFacts } from './cluster-plan.ts';

/** Phases that fail on a worker before it is a node with the version; an upgrade that fails could fail on the others, too. */
const ARRIVAL: ReadonlySet<Phase> = new Set(['create', 'images', 'join']);

/**
 * Continues what an attempt before it, also of another operator, has begun. `BUSY` while another operator applies it, `PLAN_CHANGED` if the
 * plan of `plan` is no longer what would be done. What that plan does not have is held. Failures of hosts are in the result.
 */
export const applyCluster = useCase(CLUSTER_APPLY, async (request, context): Promise<AppliedCluster> => {
  await using files = await openAddons(request, context);
  return await followPlan(await planned(request, files, context), context);
});

/** The steps that would be done; changes nothing. `PLAN_CHANGED` as when it is done. */
export const previewApply = useCase(CLUSTER_APPLY, async (request, context): Promise<PlannedCluster> => {
  await using files = await openAddons(request, context);
  return await previewPlan(await planned(request, files, context), context);
});

async function planned(
  request: Parameters<typeof applyCluster>[0],
  files: ChannelFiles | undefined,
  context: Context,
): Promise<Plan<PlannedCluster>> {
  const { plan: path, ignore = [] } = request;
  const cluster = await readHosts(request, 'apply', context);
  const saved = path === undefined ? undefined : await readSaved(path, context);
  const bundle = { path: request.bundle, facts: await bundleFacts(request.bundle, cluster, context) };
  const choices = { ...request, channels: channelsOf(files) };
  const next: Plan<PlannedCluster>['next'] = (look, _done, away) =>
    planOf(cluster, look, bundle.facts, { ...choices, away });
  const move: Plan<PlannedCluster>['moveAddon'] =
    files &&
    (async (step, inside) =>
      moveAddon(files, step, { address: request, kubeconfig: cluster.kubeconfig, context: inside }));
  const holdsOnlyItself = ({ host, phase }: Done): boolean =>
    ARRIVAL.has(phase) && cluster.machines.some(({ name, role }) => name === host && role === 'worker');
  const plan = {
    cluster,
    doing: `apply ${cluster.name}`,
    bundle,
    ignore,
    holdsOnlyItself,
    ...(move && { moveAddon: move }),
  };
  if (saved === undefined) return { ...plan, next };
  return {
    ...plan,
    next: (...seen) => withinPlan(saved, next(...seen)),
    check: async (now) => requireSameCluster(saved, now),
  };
}
