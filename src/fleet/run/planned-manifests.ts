/** What manifests would meet on clusters, found before anything is applied: kinds that are not served, and objects that they would delete. */
import { resolve } from 'node:path';
import type { Entry } from '../../cluster/channel/channel.ts';
import { isUrl } from '../../cluster/channel/location.ts';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { openChannelCluster, type ChannelCluster } from '../../cluster/deliver/channel-cluster.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { FleetPlanRequest } from '../../requests/fleet.ts';
import { driftIn } from '../drift.ts';
import type { FleetCluster } from '../fleet.ts';
import type { PlannedTarget } from '../fleet-plan.ts';
import { decide, revisionsOf, type Job } from '../pass.ts';
import { DELETIONS } from '../rollout/pruning.ts';
import { NO_STATE } from '../state.ts';
import { CLUSTERS_AT_ONCE, askCluster, MAX_BYTES } from './clusters.ts';
import { contentsOf, type Contents } from './contents.ts';
import type { FleetPlan, ObservedFleet } from './observed-fleet.ts';
import { Runner } from './runner.ts';

/**
 * Adds to each target that is about to be installed or changed why its manifest cannot be applied, or which objects go with it. Asks only
 * clusters with such a target. Charts, and manifests elsewhere, are not read before they are delivered.
 */
export async function withManifests(
  plan: FleetPlan,
  observed: ObservedFleet,
  request: Pick<FleetPlanRequest, 'timeout' | 'allowExec'>,
  context: Context,
): Promise<FleetPlan> {
  const found = new Map<string, Partial<PlannedTarget>>();
  const revisions = revisionsOf(observed.fleet, observed.observed, observed.hashOf);
  const contentFor = contentsOf(observed, NO_STATE, revisions);
  const { jobs } = decide(observed.observed, observed.now, driftIn(observed.fleet, observed.looks).driftOf);
  const read = readOnce(context);
  const isKnown = (job: Job): boolean => {
    const { entry, rendered } = contentFor(job) ?? {};
    if (job.act === 'remove' || job.act === 'restore' || entry?.source?.type !== 'manifest') return false;
    return rendered !== undefined || !isUrl(entry.source.location);
  };
  const onCluster = async (cluster: FleetCluster): Promise<void> => {
    const own = jobs.filter((job) => job.cluster === cluster.name && isKnown(job));
    if (own.length === 0) return;
    const parts = { contentFor, read };
    const answer = await askCluster(cluster, request, context, async (from, inTime) => {
      const opened = await openChannelCluster(from, inTime);
      await opened.discovery();
      return leavingOn(opened, own, { ...parts, context: inTime });
    });
    for (const [addon, more] of 'problem' in answer ? [] : answer) found.set(`${cluster.name} ${addon}`, more);
  };
  await mapLimited(observed.fleet.clusters, onCluster, { width: CLUSTERS_AT_ONCE, signal: context.signal });
  return { ...plan, targets: plan.targets.map((one) => ({ ...one, ...found.get(`${one.cluster} ${one.addon}`) })) };
}

/** Jobs are in the order in which a pass delivers them: an earlier one may define the kinds of a later one. */
async function leavingOn(
  cluster: ChannelCluster,
  jobs: readonly Job[],
  parts: { readonly contentFor: Contents; readonly read: Read; readonly context: Context },
): Promise<ReadonlyMap<string, Partial<PlannedTarget>>> {
  const found = new Map<string, Partial<PlannedTarget>>();
  const runner = new Runner(jobs, cluster, { ...parts, request: {}, live: undefined });
  for (const job of jobs) {
    try {
      const { deletes, stays, held } = await runner.leaving(job);
      const waits = { now: 'wait', reason: DELETIONS, message: held } as const;
      found.set(job.addon, { deletes, stays, ...(held !== undefined && waits) });
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      found.set(job.addon, { message: [error.message, error.hint].filter((text) => text !== undefined).join('; ') });
    }
  }
  return found;
}

type Read = (entry: Entry) => Promise<Uint8Array>;

/** Many clusters get the same files. */
function readOnce({ cwd, signal }: Context): Read {
  const contents = new Map<string, Promise<Uint8Array>>();
  return async ({ place, source }) => {
    const location = source?.type === 'manifest' ? source.location : place.file;
    const content = contents.get(location) ?? readLimited(resolve(cwd, location), MAX_BYTES, { signal });
    contents.set(location, content);
    return content;
  };
}
