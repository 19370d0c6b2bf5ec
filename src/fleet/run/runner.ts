/** What jobs do to the add-ons of a fleet on one cluster, wherever the fleet is kept. */
import { resolve } from 'node:path';
import type { Entry, Source } from '../../cluster/channel/channel.ts';
import { chartValues } from '../../cluster/channel/chart-values.ts';
import { kindChange, type LiveState } from '../../cluster/channel/pass.ts';
import { recordKey } from '../../cluster/channel/record.ts';
import type { Context } from '../../core/context.ts';
import { firstOf } from '../../core/counted.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import { hiding } from '../../core/secret.ts';
import { hiddenIn, type Addon, type Task } from '../../cluster/deliver/addon.ts';
import type { ChannelCluster } from '../../cluster/deliver/channel-cluster.ts';
import { deliver, preview } from '../../cluster/deliver/deliver.ts';
import { Delivery } from '../../cluster/deliver/delivery.ts';
import { annotate, forgetRecord } from '../../cluster/deliver/records.ts';
import type { HelmAnswers } from '../../cluster/deliver/helm.ts';
import { HeldDeletion, leavingOf } from '../../cluster/deliver/manifests.ts';
import { isDeleted, outcomeOf, retainedOrphan, type Outcome } from '../../cluster/deliver/outcome.ts';
import { removeDelivered } from '../../cluster/deliver/remove.ts';
import type { PlannedTarget } from '../fleet-plan.ts';
import { fleetOwner, ownRecord, recordFor } from '../observe.ts';
import { createNamespace, titleOf } from '../../cluster/kube/objects.ts';
import type { Deliverable, Ended, Job } from '../pass.ts';
import { mergeValues } from '../rollout/content.ts';
import { NO_AGENT } from '../upstream/addon-template.ts';
import { removalOf } from '../upstream/template-objects.ts';
import type { Values } from '../rollout/fleet.ts';
import { webTrust } from '../../steps/open/network.ts';
import type { WebRequest } from '../../requests/connection.ts';
import type { FleetApplyRequest } from '../../requests/fleet.ts';

type Rendered = NonNullable<Deliverable['rendered']>;

interface Leaving extends Required<Pick<PlannedTarget, 'deletes' | 'stays'>> {
  readonly held: string | undefined;
}
const NOTHING_LEAVES: Leaving = { deletes: [], stays: [], held: undefined };

interface RunnerParts {
  readonly request: Pick<FleetApplyRequest, 'helm' | 'wait' | keyof WebRequest>;
  readonly context: Context;
  /** What a job delivers; undefined if that is not known. */
  readonly contentFor: (job: Job) => Deliverable | undefined;
  /** The file that an entry delivers. */
  readonly read: (entry: Entry) => Promise<Uint8Array>;
  /** How objects differ from their records, by the key of the record. */
  readonly live: ReadonlyMap<string, LiveState> | undefined;
  /** The certificates that its templates ask for are there. */
  readonly isRegistered?: boolean;
  /** What the runners of a fleet share. */
  readonly answers?: HelmAnswers;
}

const MAX_NAMED = 3;

/** What may be gone at the next try, such as a disk that is full. */
const MAY_PASS: ReadonlySet<CurlewError['code']> = new Set([
  'AUTH_FAILED',
  'NO_SPACE',
  'CLUSTER_FAILED',
  'PROGRAM_FAILED',
]);

/**
 * What a failed job says of what it was to deliver. `later`: nothing, since what is away or busy comes back, and it was no try. `failed`:
 * another try may help. `bad`: it is at fault; so it is without an error, when the cluster has refused it.
 */
export function failureOf(error: CurlewError | undefined): 'later' | 'failed' | 'bad' {
  if (error === undefined) return 'bad';
  if (error.code === 'FETCH_FAILED' || error.code === 'BUSY') return 'later';
  return MAY_PASS.has(error.code) ? 'failed' : 'bad';
}

/** The jobs on one cluster, which this process holds. */
export class Runner {
  /** What ended jobs, if the cluster has not said that their add-on failed. */
  readonly errors = new Map<Job, CurlewError>();
  readonly #cluster: ChannelCluster;
  readonly #parts: RunnerParts;
  readonly #delivery: Delivery;
  readonly #ready: Task[] = [];
  /** Names of add-ons that may have another owner. */
  readonly #takeOver: string[] = [];
  /** What is delivered, or why it cannot be. */
  readonly #tasks = new Map<Job, { readonly task: Task; readonly revision: string } | string>();

  constructor(jobs: readonly Job[], cluster: ChannelCluster, parts: RunnerParts) {
    this.#cluster = cluster;
    this.#parts = parts;
    const { request, context, answers } = parts;
    this.#delivery = new Delivery({
      cluster,
      request: {
        helm: request.helm,
        timeout: request.wait,
        takeOver: this.#takeOver,
      },
      context,
      trust: async () => webTrust(request, context),
      tasks: this.#ready,
      answers,
    });
    for (const job of jobs) this.add(job);
  }

  /** A job that was not known at first: a chart, which shares no objects with what the others deliver. */
  add(job: Job): void {
    if (job.hash === '' || (job.act === 'remove' && !this.#hasHooks(job))) return;
    const one = this.#taskOf(job);
    this.#tasks.set(job, one);
    if (typeof one === 'string') return;
    this.#ready.push(one.task);
    if (job.takesOver) this.#takeOver.push(one.task.addon.name);
  }

  /**
   * What a job with a manifest would delete, and what would stay although its content no longer has it; `held`: why it would wait for
   * an approval. Changes nothing. Throws why the manifest cannot be applied.
   */
  async leaving(job: Job): Promise<Leaving> {
    const prepared = this.#tasks.get(job);
    if (typeof prepared !== 'object' || prepared.task.addon.source?.type !== 'manifest') return NOTHING_LEAVES;
    const { objects } = await this.#delivery.manifest(prepared.task);
    const { pruning, held } = await leavingOf(this.#delivery, prepared.task, objects);
    return {
      deletes: pruning.orphans.filter(isDeleted).map(({ title }) => title),
      stays: pruning.orphans.flatMap(retainedOrphan),
      held: held?.message,
    };
  }

  /** What a job would change, by dry runs on the cluster. Throws why it cannot be delivered. */
  async preview(job: Job): Promise<Pick<Outcome, 'objects' | 'errors'>> {
    const prepared = this.#tasks.get(job);
    if (typeof prepared === 'string') throw new CurlewError('CLUSTER_FAILED', prepared);
    if (job.act !== 'remove') return prepared ? preview(this.#delivery, prepared.task) : outcomeOf('unchanged');
    const record = ownRecord([...this.#cluster.facts.records.values()], job.addon);
    if (record === undefined) return outcomeOf('unchanged');
    const named = { namespace: record.namespace, name: record.addon };
    const { objects, errors } = await removeDelivered(this.#delivery, named, { isReal: false });
    return { objects: objects.map((object) => ({ object, change: 'delete', fields: [] })), errors };
  }

  async run(job: Job): Promise<Ended> {
    const { report } = this.#parts.context;
    const { cluster, addon, act } = job;
    const id = `fleet ${cluster} ${addon}`;
    report({ type: 'step-started', id, title: `${cluster}: ${act} ${addon}` });
    const done = await this.#act(job, { report: (text) => report({ type: 'step-log', id, text }) });
    const outcome = act === 'remove' ? done.reason || 'gone' : 'recorded';
    if (done.result === 'done') report({ type: 'step-done', id, outcome });
    else report({ type: 'step-failed', id, error: new CurlewError('CLUSTER_FAILED', done.reason) });
    return done;
  }

  async #act(job: Job, how: Parameters<typeof deliver>[2]): Promise<Ended> {
    // What is delivered hides them by itself; a removal knows only the record.
    const hide = hiding(hiddenIn(this.#parts.contentFor(job) ?? {}));
    const removed = async (): Promise<Ended> => {
      const { reason, ...rest } = await this.#remove(job);
      return { ...job, ...rest, reason: hide(reason) };
    };
    try {
      const prepared = this.#tasks.get(job);
      if (prepared === undefined) return await removed();
      if (typeof prepared === 'string') return { ...job, result: 'failed', reason: prepared };
      await this.#makeNamespace(job);
      const { errors, orphans } = await deliver(this.#delivery, prepared.task, how);
      const [reason = ''] = errors[0]?.message.split('\n') ?? [];
      if (job.act === 'remove' && errors.length === 0) return await removed();
      const left = orphans.map(({ object }) => object);
      const result = errors.length > 0 ? 'failed' : 'done';
      return { ...job, result, reason, orphans: left, revision: prepared.revision };
    } catch (error) {
      requireRefusal(error, this.#cluster.signal);
      if (error instanceof HeldDeletion) return { ...job, result: 'asks', reason: error.message };
      const shown = new CurlewError(error.code, hide(error.message), { hint: error.hint });
      this.errors.set(job, shown);
      return { ...job, result: 'failed', reason: shown.message.split('\n')[0] ?? '' };
    }
  }

  /** That in which an add-on of Open Cluster Management is installed: others may be there, too, so that it stays after it. */
  async #makeNamespace(job: Job): Promise<void> {
    const name = job.act === 'remove' ? undefined : this.#parts.contentFor(job)?.rendered?.namespace;
    if (name === undefined || this.#delivery.namespaces.has(name)) return;
    await createNamespace(this.#cluster.call, name);
    this.#delivery.namespaces.add(name);
  }

  async #remove({ addon, act }: Job): Promise<Pick<Ended, 'result' | 'reason' | 'orphans'>> {
    const record = ownRecord([...this.#cluster.facts.records.values()], addon);
    if (record === undefined) return { result: 'done', reason: '' };
    const named = { namespace: record.namespace, name: record.addon };
    if (act === 'forget') {
      await annotate(this.#cluster, { ...named, compat: 'native' }, undefined);
      await forgetRecord(this.#cluster, named);
      const titles = (record.objects ?? []).flatMap((kind) => kind.objects.map((object) => titleOf(kind, object)));
      return { result: 'done', reason: '', orphans: titles };
    }
    const { isDone, errors, orphans } = await removeDelivered(this.#delivery, named, { isReal: true });
    const titles = orphans.map(({ object }) => object);
    if (!isDone) return { result: 'failed', reason: errors[0]?.message ?? '', orphans: titles };
    const left = orphans.map(({ object, why }) => `${object} (${why})`);
    return {
      result: 'done',
      reason: left.length === 0 ? '' : `it leaves ${firstOf(left, MAX_NAMED)}`,
      orphans: titles,
    };
  }

  /** A template can have objects that must run before its others are removed: they join these. */
  #hasHooks(job: Job): boolean {
    return (this.#parts.contentFor(job)?.rendered?.hooks.length ?? 0) > 0;
  }

  #taskOf(job: Job): { readonly task: Task; readonly revision: string } | string {
    const { addon: name, hash, act } = job;
    const { read, context } = this.#parts;
    const deliverable = this.#parts.contentFor(job);
    if (deliverable === undefined)
      return `cannot ${act} ${name}: its earlier content is not kept; write it into the files`;
    const { entry, content, revision, rendered, rules, access } = deliverable;
    if (rendered?.registers === true && act !== 'remove' && this.#parts.isRegistered !== true)
      return `cannot ${act} ${name}: ${NO_AGENT}`;
    const { records, annotations } = this.#cluster.facts;
    const record = recordFor(records, name, entry);
    // It stays where it is.
    const place = { namespace: record?.namespace ?? entry.namespace, name: record?.addon ?? entry.name };
    const key = recordKey(place.namespace, place.name);
    const kinds = kindChange(entry, record);
    if (kinds !== undefined) return `cannot ${act} ${name}: ${kinds}`;
    try {
      const addon: Addon = {
        ...entry,
        ...place,
        id: hash,
        owner: fleetOwner(name),
        origin: resolve(context.cwd, entry.place.file),
        compat: 'native',
        prune: pruneOf(job, entry),
        guardsObjects: job.prune === undefined,
        ...(rendered && { hash: '', asOcm: rules === 'ocm' }),
        ...(access && { access }),
        read: async () => (rendered ? manifestOf(rendered, job) : read(entry)),
        hashOf: (bytes) => hexOf(digestOf(bytes)),
        ...(entry.source?.type === 'chart' && { values: this.#valuesOf(entry.source, entry, content.values) }),
      };
      const live = this.#parts.live?.get(key);
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

/** A removal deletes all of it in its end. A list of kinds in a channel selects as it does there. */
function pruneOf({ act, prune }: Job, entry: Pick<Entry, 'prune'>): Addon['prune'] {
  if (act === 'remove' || prune === 'None') return undefined;
  return typeof entry.prune === 'object' ? entry.prune : 'recorded';
}

/** The objects of templates, as a manifest; before a removal, with its hooks. */
function manifestOf(rendered: Rendered, { act }: Job): Uint8Array {
  const { kept, applied } = removalOf(rendered, 'running');
  const items = act === 'remove' ? [...kept, ...applied] : rendered.objects;
  return Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}
