/** Kinds that manifests need and clusters do not serve, found before anything is applied. */
import { resolve } from 'node:path';
import type { Entry } from '../../cluster/channel/channel.ts';
import { isUrl } from '../../cluster/channel/location.ts';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { openClusterApi } from '../../cluster/deliver/channel-cluster.ts';
import { addonObjects, definedKinds } from '../../cluster/deliver/addon-objects.ts';
import { discover, type Discovery, type Resource } from '../../cluster/kube/resources.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { FleetPlanRequest } from '../../requests/fleet.ts';
import type { FleetCluster } from '../fleet.ts';
import { decide, deliverable, revisionsOf } from '../pass.ts';
import { CLUSTERS_AT_ONCE, askCluster, MAX_BYTES } from './clusters.ts';
import type { FleetPlan, ObservedFleet } from './observed-fleet.ts';

interface Manifest {
  readonly addon: string;
  readonly entry: Entry;
  readonly location: string;
}

/**
 * Adds to each target that is about to be installed or updated why its manifest cannot be applied. Asks only clusters with such a
 * target, once each. Charts, and manifests elsewhere, are not read before they are delivered.
 */
export async function withMissingKinds(
  plan: FleetPlan,
  observed: ObservedFleet,
  request: Pick<FleetPlanRequest, 'timeout' | 'allowExec'>,
  context: Context,
): Promise<FleetPlan> {
  const problems = new Map<string, string>();
  const manifestsOf = manifestsIn(observed);
  const read = readOnce(context);
  const onCluster = async (cluster: FleetCluster): Promise<void> => {
    const answer = await askCluster(cluster, request, context, async (from, own) => {
      const { api } = await openClusterApi(from, own);
      return discover(api, { patienceMs: 0, signal: own.signal });
    });
    const messages = 'problem' in answer ? [] : await problemsOf(manifestsOf.get(cluster.name) ?? [], answer, read);
    for (const [addon, message] of messages) problems.set(`${cluster.name} ${addon}`, message);
  };
  const asked = observed.fleet.clusters.filter(({ name }) => manifestsOf.has(name));
  await mapLimited(asked, onCluster, { width: CLUSTERS_AT_ONCE, signal: context.signal });
  const targets = plan.targets.map((target) => {
    const message = problems.get(`${target.cluster} ${target.addon}`);
    return message === undefined ? target : { ...target, message };
  });
  return { ...plan, targets };
}

/** By cluster, in the order in which a pass delivers them: an earlier one may define the kinds of a later one. */
function manifestsIn({ fleet, observed, hashOf, now }: ObservedFleet): ReadonlyMap<string, readonly Manifest[]> {
  const clusters = new Map(observed.clusters.map((one) => [one.name, one]));
  const revisions = revisionsOf(fleet, observed, hashOf);
  const manifests = new Map<string, Manifest[]>();
  for (const { cluster, addon, act, hash } of decide(observed, now).jobs) {
    const [seen, revision] = [clusters.get(cluster), revisions.get(addon)];
    if ((act !== 'install' && act !== 'update') || seen === undefined || revision === undefined) continue;
    const { entry, rendered } = deliverable(hash, seen, [revision]) ?? {};
    const location = entry?.source?.type === 'manifest' && rendered === undefined ? entry.source.location : undefined;
    if (entry === undefined || location === undefined || isUrl(location)) continue;
    manifests.set(cluster, [...(manifests.get(cluster) ?? []), { addon, entry, location }]);
  }
  return manifests;
}

type Read = (location: string) => Promise<Uint8Array>;

/** Many clusters get the same files. */
function readOnce({ cwd, signal }: Context): Read {
  const contents = new Map<string, Promise<Uint8Array>>();
  return async (location) => {
    const content = contents.get(location) ?? readLimited(resolve(cwd, location), MAX_BYTES, { signal });
    contents.set(location, content);
    return content;
  };
}

async function problemsOf(
  manifests: readonly Manifest[],
  discovery: Discovery,
  read: Read,
): Promise<ReadonlyMap<string, string>> {
  const problems = new Map<string, string>();
  const defined: Resource[] = [];
  for (const { addon, entry, location } of manifests) {
    try {
      const content = await read(location);
      const about = { addon: entry, record: undefined };
      const objects = addonObjects(about, { location, content }, { ...discovery, defined, namespace: 'default' });
      defined.push(...objects.flatMap(definedKinds));
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      problems.set(addon, [error.message, error.hint].filter((text) => text !== undefined).join('; '));
    }
  }
  return problems;
}
