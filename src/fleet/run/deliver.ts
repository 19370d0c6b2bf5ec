/** Carries out what a pass over a fleet does: one delivery for each cluster, up to 20 at once. */
import type { Entry } from '../../cluster/channel/channel.ts';
import type { Context } from '../../core/context.ts';
import { canonicalJson } from '../../core/digest.ts';
import { requireRefusal } from '../../core/errors.ts';
import { holdCluster, openChannelCluster } from '../../cluster/deliver/channel-cluster.ts';
import { helmAnswers, type HelmAnswers } from '../../cluster/deliver/helm.ts';
import { driftIn } from '../drift.ts';
import type { FleetCluster } from '../fleet.ts';
import { ownRecord, recordsOf } from '../observe.ts';
import { beginPass, closedFor, decide, endPass, revisionsOf, type Ended, type Job } from '../pass.ts';
import { withLooks, type FleetState, type StateRevision } from '../state.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { openChannels } from '../../steps/open/channel-files.ts';
import type { FleetApplyRequest } from '../../requests/fleet.ts';
import { accessTo, CLUSTERS_AT_ONCE, lookAtClusters } from './clusters.ts';
import { contentsOf } from './contents.ts';
import { observeAgain, type ObservedFleet } from './observed-fleet.ts';
import { Runner } from './runner.ts';
import type { StateFolder } from './state.ts';

interface PassParts {
  readonly request: FleetApplyRequest;
  readonly context: Context;
  readonly folder: StateFolder;
  readonly state: FleetState;
  /** By which the jobs were decided. */
  readonly before: Pick<ObservedFleet, 'fleet' | 'looks' | 'observed'>;
  readonly revisions: ReadonlyMap<string, StateRevision>;
  /** The file that an entry delivers. */
  readonly read: (entry: Entry) => Promise<Uint8Array>;
  readonly answers: HelmAnswers;
}

/** Does what may begin now, of all add-ons or of one. Returns the fleet after it. */
export async function makePass(
  folder: StateFolder,
  before: ObservedFleet,
  { request, context, only }: Pick<PassParts, 'request' | 'context'> & { readonly only?: string },
): Promise<{ readonly after: ObservedFleet; readonly done: readonly Ended[] }> {
  const { fleet, now, looks } = before;
  const isMeant = (addon: string): boolean => only === undefined || addon === only;
  const decided = decide(before.observed, now, driftIn(fleet, looks).driftOf);
  const jobs = decided.jobs.filter(({ addon }) => isMeant(addon));
  const revisions = revisionsOf(fleet, before.observed, before.hashOf);
  const addons = before.observed.addons.filter(({ name }) => isMeant(name));
  const state = beginPass(before.state, { ...before.observed, addons }, { ...decided, now, jobs, revisions });
  await folder.write(state);
  if (jobs.length === 0) return { after: before, done: [] };
  await using opened = await openChannels({ ...request, channels: [] }, context);
  const read = folder.reader(opened, context);
  const done = await runJobs(jobs, {
    request,
    context,
    folder,
    state,
    before,
    revisions,
    read,
    answers: helmAnswers(),
  });
  const touched = fleet.clusters.filter(({ name }) => done.some(({ cluster }) => cluster === name));
  const again = new Map([...looks, ...(await lookAtClusters(touched, request, context))]);
  const then = Math.floor(Date.now() / 1000);
  const ended = endPass(withLooks(state, again, then), done, then, before.state);
  await folder.write(ended);
  await folder.sweep(ended);
  return { after: observeAgain(before, { looks: again, now: then, state: ended }), done };
}

/** A cluster that cannot be reached, or that has changed meanwhile, is left to the next pass. */
async function runJobs(jobs: readonly Job[], parts: PassParts): Promise<readonly Ended[]> {
  const { signal } = parts.context;
  const onCluster = async (cluster: FleetCluster): Promise<readonly Ended[]> => {
    const own = jobs.filter((job) => job.cluster === cluster.name);
    return own.length === 0 ? [] : runOnCluster(own, cluster, parts);
  };
  return (await mapLimited(parts.before.fleet.clusters, onCluster, { width: CLUSTERS_AT_ONCE, signal })).flat();
}

async function runOnCluster(jobs: readonly Job[], written: FleetCluster, parts: PassParts): Promise<readonly Ended[]> {
  const { request, context, folder, state, before, revisions, read, answers } = parts;
  const done: Ended[] = [];
  try {
    using access = accessTo(written);
    const { name } = written;
    const look = before.looks.get(name);
    const cluster = await openChannelCluster(
      { kubeconfig: access.kubeconfig, isForeign: request.allowExec !== true, way: 'spec.access' },
      context,
    );
    await using lease = await holdCluster(cluster, { doing: `apply a fleet to ${name}`, context });
    const contentFor = contentsOf(before, state, revisions);
    const live = look !== undefined && 'live' in look ? look.live : undefined;
    const runner = new Runner(jobs, lease.cluster, { request, context, contentFor, read, live, answers });
    const records = [...lease.cluster.facts.records.values()];
    const isChanged = ({ addon }: Job): boolean => {
      const [then, now] = [recordsOf(look), records].map((all) => canonicalJson(ownRecord(all, addon) ?? {}));
      return then !== now;
    };
    for (const job of jobs) {
      // It may have been paused since this pass began, or while the job before took its time, and a window may have closed.
      const { [job.addon]: order } = (await folder.readOrders()).addons;
      const now = Math.floor(Date.now() / 1000);
      const held =
        (order?.paused ? 'it is paused' : closedFor(job, before.observed, now)) ??
        (isChanged(job) ? 'another command has changed it meanwhile' : undefined);
      done.push(held === undefined ? await runner.run(job) : { ...job, result: 'later', reason: held });
    }
  } catch (error) {
    requireRefusal(error, context.signal);
    const { message } = error;
    return [...done, ...jobs.slice(done.length).map((job): Ended => ({ ...job, result: 'later', reason: message }))];
  }
  return done;
}
