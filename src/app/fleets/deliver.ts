/** Carries out what a pass over a fleet does: one delivery for each cluster, up to 20 at once. */
import { resolve } from 'node:path';
import type { Entry, Source } from '../../channel/channel.ts';
import { chartValues } from '../../channel/chart-values.ts';
import { kindChange } from '../../channel/pass.ts';
import { recordKey, type AddonRecord } from '../../channel/record.ts';
import type { Context } from '../../core/context.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Addon, Task } from '../../deliver/addon.ts';
import { holdCluster, openChannelCluster, type ChannelCluster } from '../../deliver/cluster.ts';
import { deliver } from '../../deliver/deliver.ts';
import { Delivery } from '../../deliver/delivery.ts';
import { annotate, forgetRecord } from '../../deliver/records.ts';
import { remove } from '../../deliver/remove.ts';
import { driftIn } from '../../fleet/drift.ts';
import type { WrittenCluster } from '../../fleet/fleet.ts';
import { ownerOf, recordsOf } from '../../fleet/observe.ts';
import {
  beginPass,
  closedFor,
  decide,
  deliverable,
  endPass,
  revisionsOf,
  type Done,
  type Job,
} from '../../fleet/pass.ts';
import { withLooks, type FleetState, type Revision } from '../../fleet/state.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { mergeValues } from '../../rollout/content.ts';
import type { Values } from '../../rollout/fleet.ts';
import { openChannels } from '../ports/channel-files.ts';
import { webTrust } from '../ports/network.ts';
import type { FleetApplyRequest } from '../requests/fleet.ts';
import { accessTo, AT_ONCE, lookAtClusters } from './clusters.ts';
import { observeAgain, type ObservedFleet } from './observed.ts';
import type { StateFolder } from './state.ts';

type Rendered = NonNullable<NonNullable<ReturnType<typeof deliverable>>['rendered']>;

interface PassParts {
  readonly request: FleetApplyRequest;
  readonly context: Context;
  readonly folder: StateFolder;
  readonly state: FleetState;
  /** By which the jobs were decided. */
  readonly before: Pick<ObservedFleet, 'fleet' | 'looks' | 'observed'>;
  readonly revisions: ReadonlyMap<string, Revision>;
  /** The file that an entry delivers. */
  readonly read: (entry: Entry) => Promise<Uint8Array>;
}

/** Does what may begin now, of all add-ons or of one. Returns the fleet after it. */
export async function makePass(
  folder: StateFolder,
  before: ObservedFleet,
  { request, context, only }: Pick<PassParts, 'request' | 'context'> & { readonly only?: string },
): Promise<{ readonly after: ObservedFleet; readonly done: readonly Done[] }> {
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
  const done = await runJobs(jobs, { request, context, folder, state, before, revisions, read });
  const touched = fleet.clusters.filter(({ name }) => done.some(({ cluster }) => cluster === name));
  const again = new Map([...looks, ...(await lookAtClusters(touched, request, context))]);
  const then = Math.floor(Date.now() / 1000);
  const ended = endPass(withLooks(state, again, then), done, then, before.state);
  await folder.write(ended);
  await folder.sweep(ended);
  return { after: observeAgain(before, { looks: again, now: then, state: ended }), done };
}

/** A cluster that cannot be reached, or that has changed meanwhile, is left to the next pass. */
async function runJobs(jobs: readonly Job[], parts: PassParts): Promise<readonly Done[]> {
  const { signal } = parts.context;
  const onCluster = async (cluster: WrittenCluster): Promise<readonly Done[]> => {
    const own = jobs.filter((job) => job.cluster === cluster.name);
    return own.length === 0 ? [] : runOnCluster(own, cluster, parts);
  };
  return (await mapLimited(parts.before.fleet.clusters, onCluster, { width: AT_ONCE, signal })).flat();
}

async function runOnCluster(jobs: readonly Job[], written: WrittenCluster, parts: PassParts): Promise<readonly Done[]> {
  const { request, context, folder } = parts;
  const done: Done[] = [];
  try {
    using access = accessTo(written);
    const { name } = written;
    const cluster = await openChannelCluster(
      { kubeconfig: access.kubeconfig, isForeign: request.allowExec !== true },
      context,
    );
    await using lease = await holdCluster(cluster, { doing: `apply a fleet to ${name}`, context });
    const runner = new Runner(jobs, lease.cluster, parts);
    for (const job of jobs) {
      // It may have been paused since this pass began, or while the job before took its time, and a window may have closed.
      const { [job.addon]: order } = (await folder.readOrders()).addons;
      const now = Math.floor(Date.now() / 1000);
      const held = order?.paused ? 'it is paused' : closedFor(job, parts.before.observed, now);
      done.push(held === undefined ? await runner.run(job) : { ...job, result: 'later', reason: held });
    }
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    const { message } = error;
    return [...done, ...jobs.slice(done.length).map((job): Done => ({ ...job, result: 'later', reason: message }))];
  }
  return done;
}

/** The jobs on one cluster. */
class Runner {
  readonly #cluster: ChannelCluster;
  readonly #parts: PassParts;
  readonly #delivery: Delivery;
  /** What is delivered, or why it cannot be. */
  readonly #tasks = new Map<Job, { readonly task: Task; readonly revision: string } | string>();

  constructor(jobs: readonly Job[], cluster: ChannelCluster, parts: PassParts) {
    this.#cluster = cluster;
    this.#parts = parts;
    const { request, context } = parts;
    for (const job of jobs)
      if (job.hash !== '' && (job.act !== 'remove' || this.#hasHooks(job))) this.#tasks.set(job, this.#taskOf(job));
    const found = [...this.#tasks].flatMap(([job, one]) => (typeof one === 'string' ? [] : [{ job, task: one.task }]));
    this.#delivery = new Delivery({
      cluster,
      request: {
        helm: request.helm,
        timeout: request.wait,
        takeOver: found.flatMap(({ job, task }) => (job.takesOver ? [task.addon.name] : [])),
      },
      context,
      trust: async () => webTrust(request, context),
      tasks: found.map(({ task }) => task),
    });
  }

  async run(job: Job): Promise<Done> {
    const { report } = this.#parts.context;
    const { cluster, addon, act } = job;
    const [before, now] = [
      recordsOf(this.#parts.before.looks.get(cluster)),
      [...this.#cluster.facts.records.values()],
    ].map((records) => canonicalJson(ownRecord(records, addon) ?? {}));
    if (before !== now) return { ...job, result: 'later', reason: 'another command has changed it meanwhile' };
    const id = `fleet ${cluster} ${addon}`;
    report({ type: 'step-started', id, title: `${cluster}: ${act} ${addon}` });
    const done = await this.#act(job, { report: (text) => report({ type: 'step-log', id, text }) });
    if (done.result === 'done') report({ type: 'step-done', id, outcome: act === 'remove' ? 'gone' : 'recorded' });
    else report({ type: 'step-failed', id, error: new CurlewError('CLUSTER_FAILED', done.reason) });
    return done;
  }

  async #act(job: Job, how: Parameters<typeof deliver>[2]): Promise<Done> {
    try {
      const found = this.#tasks.get(job);
      if (found === undefined) return { ...job, ...(await this.#remove(job)) };
      if (typeof found === 'string') return { ...job, result: 'failed', reason: found };
      const { errors } = await deliver(this.#delivery, found.task, how);
      const [reason = ''] = errors[0]?.message.split('\n') ?? [];
      if (job.act === 'remove')
        return { ...job, ...(errors.length > 0 ? { result: 'failed', reason } : await this.#remove(job)) };
      return { ...job, result: errors.length > 0 ? 'failed' : 'done', reason, revision: found.revision };
    } catch (error) {
      this.#cluster.signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      return { ...job, result: 'failed', reason: error.message.split('\n')[0] ?? '' };
    }
  }

  async #remove({ addon, act }: Job): Promise<Pick<Done, 'result' | 'reason'>> {
    const record = ownRecord([...this.#cluster.facts.records.values()], addon);
    if (record === undefined) return { result: 'done', reason: '' };
    const named = { namespace: record.namespace, name: record.addon };
    if (act === 'forget') {
      await annotate(this.#cluster, { ...named, compat: 'native' }, undefined);
      await forgetRecord(this.#cluster, named);
      return { result: 'done', reason: '' };
    }
    const { isDone, errors } = await remove(this.#delivery, named, { isReal: true });
    return { result: isDone ? 'done' : 'failed', reason: errors[0]?.message ?? '' };
  }

  /** What was recorded for a job, among the contents that are known. */
  #found({ cluster, addon, hash }: Job): ReturnType<typeof deliverable> {
    const { before, revisions, state } = this.#parts;
    const now = revisions.get(addon);
    const all = [...(now ? [now] : []), ...(state.addons[addon]?.kept ?? [])];
    const seen = before.observed.clusters.find((one) => one.name === cluster);
    return seen && deliverable(hash, seen, all);
  }

  /** A template can have objects that must run before its others are removed: they join these. */
  #hasHooks(job: Job): boolean {
    return (this.#found(job)?.rendered?.hooks.length ?? 0) > 0;
  }

  #taskOf(job: Job): { readonly task: Task; readonly revision: string } | string {
    const { addon: name, hash, act } = job;
    const { read, context } = this.#parts;
    const found = this.#found(job);
    if (found === undefined) return `cannot ${act} ${name}: its earlier content is not kept; write it into the files`;
    const { entry, content, revision, rendered } = found;
    const { records, annotations } = this.#cluster.facts;
    const key = recordKey(entry.namespace, entry.name);
    const record = records.get(key);
    const kinds = kindChange(entry, record);
    if (kinds !== undefined) return `cannot ${act} ${name}: ${kinds}`;
    try {
      const addon: Addon = {
        ...entry,
        id: hash,
        owner: ownerOf(name),
        origin: resolve(context.cwd, entry.place.file),
        compat: 'native',
        ...(rendered && { hash: '' }),
        read: async () => (rendered ? manifestOf(rendered, job) : read(entry)),
        hashOf: (bytes) => hexOf(digestOf(bytes)),
        ...(entry.source?.type === 'chart' && { values: this.#valuesOf(entry.source, entry, content.values) }),
      };
      const seenThere = this.#parts.before.looks.get(job.cluster);
      const live = seenThere !== undefined && 'live' in seenThere ? seenThere.live?.get(key) : undefined;
      const look = act === 'restore' && live ? live : { missing: [], changed: [] };
      const restoring = look.missing.length > 0 ? 'restore' : 'revert';
      const action = record === undefined ? 'install' : act === 'restore' ? restoring : 'update';
      return { task: { addon, action, installed: annotations.get(key), record, look }, revision };
    } catch (error) {
      if (error instanceof CurlewError) return error.message;
      throw error;
    }
  }

  /** Texts are rendered once: those of a channel's chart here, those of the fleet by its own template. */
  #valuesOf({ chart }: Extract<Source, { readonly type: 'chart' }>, entry: Entry, own: Values): Values {
    const { server, kubernetes: version, facts } = this.#cluster;
    const base = chartValues(chart, entry, { server, version, kubernetes: facts.kubernetes });
    return Object.keys(own).length === 0 ? base : mergeValues([base, own]);
  }
}

/** The objects of templates, as a manifest; before a removal, with its hooks. */
function manifestOf({ objects, hooks }: Rendered, { act }: Job): Uint8Array {
  const items = act === 'remove' ? [...objects, ...hooks] : objects;
  return Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

function ownRecord(records: readonly AddonRecord[], addon: string): AddonRecord | undefined {
  return records.find(({ owner }) => owner === ownerOf(addon));
}
