/** What would become of changes on clusters, before anything is applied: kinds that are not served, objects that go, and dry runs. */
import { resolve } from 'node:path';
import { entryFile, type Entry } from '../../cluster/channel/channel.ts';
import { isUrl } from '../../cluster/channel/location.ts';
import type { Context } from '../../core/context.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { openChannelCluster, type ChannelCluster } from '../../cluster/deliver/channel-cluster.ts';
import { helmAnswers } from '../../cluster/deliver/helm.ts';
import type { ChangedObject } from '../../cluster/deliver/outcome.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { WebRequest } from '../../requests/connection.ts';
import type { FleetPlanRequest } from '../../requests/fleet.ts';
import { driftIn } from '../drift.ts';
import type { FleetCluster } from '../fleet.ts';
import type { PlannedTarget } from '../fleet-plan.ts';
import { decide, revisionsOf, type Job } from '../pass.ts';
import { DELETIONS } from '../rollout/pruning.ts';
import { NO_STATE } from '../state.ts';
import { CLUSTERS_AT_ONCE, askCluster, MAX_BYTES } from './clusters.ts';
import { contentsOf } from './contents.ts';
import type { FleetDiff, FleetPlan, ObservedFleet } from './observed-fleet.ts';
import { Runner } from './runner.ts';

/** With dry runs: a chart is downloaded and rendered, and each object is tried. */
const DIFF_TIMEOUT_MS = 120_000;
/** Fields that are kept of an add-on on a cluster. */
const MAX_FIELDS = 2000;

/** What a cluster says about an add-on; `changes` only if that was asked for. */
type Found = Partial<PlannedTarget> & { readonly changes?: readonly ChangedObject[] };

/**
 * Adds to each target that is about to be installed or changed why its manifest cannot be applied, or which objects go with it. Asks only
 * clusters with such a target. With `diff`, adds what changes in the objects, also in those of charts, which are otherwise not read
 * before they are delivered. Files elsewhere are not read.
 */
export async function withManifests(
  plan: FleetPlan,
  observed: ObservedFleet,
  request: Pick<FleetPlanRequest, 'timeout' | 'allowExec' | 'diff' | 'helm' | keyof WebRequest>,
  context: Context,
): Promise<FleetPlan> {
  const { diff: isDiff = false, timeout = isDiff ? DIFF_TIMEOUT_MS : undefined, allowExec } = request;
  const found = new Map<string, Found>();
  const warnings = [...plan.warnings];
  const known = new Map<string, readonly ChangedObject[]>();
  const revisions = revisionsOf(observed.fleet, observed.observed, observed.hashOf);
  const contentFor = contentsOf(observed, NO_STATE, revisions);
  const { jobs } = decide(observed.observed, observed.now, driftIn(observed.fleet, observed.looks).driftOf);
  const read = readOnce(context);
  const isKnown = (job: Job): boolean => {
    if (job.act === 'remove' || (job.act === 'restore' && !isDiff)) return isDiff;
    const { entry, rendered } = contentFor(job) ?? {};
    const location = entry && entryFile(entry);
    const isHere = rendered !== undefined || location === undefined || !isUrl(location);
    return isHere && (entry?.source?.type === 'manifest' || (isDiff && entry?.source?.type === 'chart'));
  };
  const answers = helmAnswers();
  const onCluster = async (cluster: FleetCluster): Promise<void> => {
    const own = jobs.filter((job) => job.cluster === cluster.name && isKnown(job));
    if (own.length === 0) return;
    const look = observed.looks.get(cluster.name);
    const live = look !== undefined && 'live' in look ? look.live : undefined;
    const answer = await askCluster(cluster, { timeout, allowExec }, context, async (from, inTime) => {
      const opened = await openChannelCluster(from, inTime);
      await opened.discovery();
      return foundOn(opened, own, { contentFor, read, request, live, answers, context: inTime });
    });
    if ('problem' in answer) {
      if (isDiff) warnings.push(`${cluster.name}: its changes are not known: ${answer.problem}`);
      return;
    }
    for (const [addon, { changes, ...more }] of answer) {
      // Many clusters change in the same way.
      const id = `${addon} ${digestOf(JSON.stringify(changes ?? []))}`;
      if (changes !== undefined) known.set(id, known.get(id) ?? changes);
      found.set(`${cluster.name} ${addon}`, { ...more, ...(changes && { changes: known.get(id) ?? changes }) });
    }
  };
  await mapLimited(observed.fleet.clusters, onCluster, { width: CLUSTERS_AT_ONCE, signal: context.signal });
  const changed = plan.targets.flatMap(({ cluster, addon }) => {
    const { changes } = found.get(`${cluster} ${addon}`) ?? {};
    return changes === undefined ? [] : [{ cluster, addon, changes }];
  });
  const diffs = [...groupBy(changed, ({ changes }) => changes)].map(([objects, same]): FleetDiff => {
    return { addon: same[0]?.addon ?? '', clusters: same.map(({ cluster }) => cluster), objects };
  });
  const targets = plan.targets.map((one) => {
    const { changes: _changes, ...more } = found.get(`${one.cluster} ${one.addon}`) ?? {};
    return { ...one, ...more };
  });
  return { ...plan, targets, warnings, ...(isDiff && { diffs }) };
}

/** Jobs are in the order in which a pass delivers them: an earlier one may define the kinds of a later one. */
async function foundOn(
  cluster: ChannelCluster,
  jobs: readonly Job[],
  parts: ConstructorParameters<typeof Runner>[2] & { readonly request: Pick<FleetPlanRequest, 'diff'> },
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  const runner = new Runner(jobs, cluster, parts);
  for (const job of jobs) {
    try {
      const { deletes, stays, held } = await runner.leaving(job);
      const waits = { now: 'wait', reason: DELETIONS, message: held } as const;
      found.set(job.addon, { deletes, stays, ...(held !== undefined && waits) });
      if (parts.request.diff !== true || held !== undefined) continue;
      const { objects, errors } = await runner.preview(job);
      const [failure] = errors;
      const more = failure ? { message: failure.message } : { changes: bounded(objects) };
      found.set(job.addon, { deletes, stays, ...more });
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      found.set(job.addon, { message: [error.message, error.hint].filter((text) => text !== undefined).join('; ') });
    }
  }
  return found;
}

function bounded(objects: readonly ChangedObject[]): readonly ChangedObject[] {
  let room = MAX_FIELDS;
  return objects.map((one) => {
    const fields = one.fields.slice(0, room);
    room -= fields.length;
    return { ...one, fields };
  });
}

type Read = (entry: Entry) => Promise<Uint8Array>;

/** Many clusters get the same files. */
function readOnce({ cwd, signal }: Context): Read {
  const contents = new Map<string, Promise<Uint8Array>>();
  return async (entry) => {
    const location = entryFile(entry) ?? entry.place.file;
    const content = contents.get(location) ?? readLimited(resolve(cwd, location), MAX_BYTES, { signal });
    contents.set(location, content);
    return content;
  };
}
