/** Deliveries to the clusters whose kubeconfig a hub has: each in its own time, up to 20 at once. */
import { asError, CurlewError, requireRefusal } from '../../../core/errors.ts';
import type { Context } from '../../../core/context.ts';
import { holdCluster, openClusterApi } from '../../../cluster/deliver/channel-cluster.ts';
import { ANSWERS_MS, helmAnswers } from '../../../cluster/deliver/helm.ts';
import type { ChartAccess } from '../../../cluster/channel/channel.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import type { Reply, Look } from '../../fleet.ts';
import type { Deliverable, Job } from '../../pass.ts';
import { namespaceOf, type HubAddon, type HubCluster, type HubClusterAddon } from '../observe.ts';
import type { AddonReport } from '../addon-status.ts';
import {
  accessIn,
  pushedStatus,
  deliverableOf,
  kubeconfigIn,
  previousOwner,
  jobOrReport,
  textIn,
  reportedStatus,
} from '../push.ts';
import { requireEmbedded } from '../../../cluster/kube/kubeconfig.ts';
import type { Resource } from '../../../cluster/kube/resources.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import { createSemaphore } from '../../../platform/limit/semaphore.ts';
import { Wake } from '../../../platform/limit/wake.ts';
import type { ClusterAddon, Values } from '../../rollout/fleet.ts';
import { retryAt } from '../../rollout/orders.ts';
import { DELETIONS } from '../../rollout/pruning.ts';
import { accessTo, CLUSTERS_AT_ONCE, lookAtClusters } from '../../run/clusters.ts';
import { failureOf, Runner } from '../../run/runner.ts';
import { openChannels } from '../../../steps/open/channel-files.ts';
import type { ControllerRequest } from '../../../requests/hub.ts';
import { CLUSTER_ADDONS, clustersOf, joinedIn, keyAt, patchStatus, resourceOf, type Hub } from './hub-pass.ts';
import { getSecret } from './secrets.ts';
import { eachOrdered, type Ordered, type Own } from './ordered-jobs.ts';

const CLUSTERS = resourceOf('Cluster');
/** A cluster without news is asked again after this time, ± 25 %; one that fails at the latest then. */
const EVERY_MS = 60_000;

interface Parts {
  readonly request: ControllerRequest;
  readonly context: Context;
  /** Seconds since 1970 by the clock of the hub. */
  readonly now: () => number;
  /** Called when a turn has ended. */
  readonly onEnd: () => void;
}

/** Tries to deliver one revision: after the last one that was ended by an error, it has failed. */
const MAX_TRIES = 3;

/** A turn that is under way. */
interface Turn {
  /** There may be more to do. */
  readonly more: Wake;
  /** What it has looked at, by {@link Own.order}. */
  readonly followed: Set<string>;
  /** When no more orders join, by `performance.now()`: the kubeconfig may have another token soon. */
  readonly until: number;
}

/** When a cluster has its next turn. */
interface Next {
  /** By `performance.now()`. */
  readonly at: number;
  /** What the last turn was about: other orders are followed at once; undefined if it was not about any. */
  readonly about: string | undefined;
}

/** What a job delivers; a text says why it cannot be delivered, an error why not now. */
type Content = Deliverable | CurlewError | string;

/** A cluster that does not answer, or takes its time, holds no other. */
export class Pushes {
  readonly #hub: Hub;
  readonly #parts: Parts;
  readonly #turns = new Map<string, Turn & { readonly ended: Promise<void> }>();
  readonly #next = new Map<string, Next>();
  /** When each answered last, in seconds since 1970. */
  readonly #seen = new Map<string, number>();
  /** Tries that an error has ended, by add-on on a cluster. */
  readonly #tries = new Map<string, { readonly revision: number; readonly count: number }>();
  /** Looks are short; deliveries may wait for health. */
  readonly #looks = createSemaphore(CLUSTERS_AT_ONCE);
  readonly #slots = createSemaphore(CLUSTERS_AT_ONCE);
  readonly #backoff = new Backoff();
  readonly #answers = helmAnswers(ANSWERS_MS);
  #failure: unknown;

  constructor(hub: Hub, parts: Parts) {
    this.#hub = hub;
    this.#parts = parts;
  }

  /** Begins the turns that are due. Returns the milliseconds until the next one is. */
  start(): number {
    if (this.#failure !== undefined) throw asError(this.#failure);
    const pushed = clustersOf(this.#hub).filter(({ secret }) => secret !== undefined);
    const now = performance.now();
    let least = Infinity;
    for (const one of pushed) {
      const { name } = one.cluster;
      this.#turns.get(name)?.more.set();
      if (this.#turns.has(name)) continue;
      const { at, about } = this.#next.get(name) ?? { at: now };
      const present = ordersOn(one, this.#ownOf(name));
      if (at > now && (about === undefined || about === present)) least = Math.min(least, at - now);
      else {
        const turn = { more: new Wake(), followed: new Set<string>(), until: now + EVERY_MS };
        this.#turns.set(name, { ...turn, ended: this.#run(one, present, turn) });
      }
    }
    return least;
  }

  /** Waits until no turn is under way; the signal of the hub ends them. */
  async ended(): Promise<void> {
    await Promise.all([...this.#turns.values()].map(async ({ ended }) => ended));
  }

  #ownOf(cluster: string): readonly Own[] {
    const { addons, clusterAddons } = this.#hub;
    return clusterAddons.values(namespaceOf(cluster)).flatMap((object) => {
      const { record } = object ?? {};
      if (!object || !record) return [];
      const addon = addons.get({ name: record.addon });
      return [{ object, record, addon, order: orderOf(record, addon, this.#parts.now()) }];
    });
  }

  /** Never rejects. */
  async #run(one: HubCluster, before: string, turn: Turn): Promise<void> {
    const { signal } = this.#hub;
    const { name } = one.cluster;
    let next: Next;
    try {
      const waits = await this.#turn(name, turn);
      const own = this.#ownOf(name);
      // Another order is followed at once.
      const about = own.every(({ order }) => turn.followed.has(order)) ? ordersOn(one, own) : before;
      // What waits on a cluster that answers holds no other order there.
      if (waits !== undefined) next = { at: this.#again(name, waits), about };
      else {
        this.#backoff.succeeded(name);
        next = { at: performance.now() + EVERY_MS * (0.75 + Math.random() / 2), about };
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof CurlewError)) this.#failure = error;
      next = { at: this.#again(name, error), about: undefined };
    }
    this.#next.set(name, next);
    this.#turns.delete(name);
    this.#parts.onEnd();
  }

  /** Says why a cluster is tried again. Returns when. */
  #again(name: string, error: unknown): number {
    if (!this.#hub.signal.aborted) this.#hub.report(`${name}: ${asError(error).message}`);
    return performance.now() + Math.min(this.#backoff.failed(name), EVERY_MS);
  }

  /** Asks a cluster, and brings onto it what it is to have. Returns why some of it is tried again soon. */
  async #turn(name: string, turn: Turn): Promise<CurlewError | undefined> {
    const { signal } = this.#hub;
    const looked = await this.#looks.run(async () => this.#look(name), { signal });
    if (looked === undefined) return undefined;
    const { access, look } = looked;
    for (const { order } of this.#ownOf(name)) turn.followed.add(order);
    const { jobs, reports } = this.#needed(name, look);
    for (const [own, report] of reports) await this.#report(own, report);
    if (jobs.length === 0) return undefined;
    return this.#slots.run(async () => this.#deliver(jobs, access, { look, turn }), { signal });
  }

  /** What the add-ons of a cluster that has answered need, or how they are there. */
  #needed(name: string, look: Reply) {
    const windows = this.#cluster(name)?.cluster.windows;
    const jobs: Ordered[] = [];
    const reports: (readonly [Own, AddonReport])[] = [];
    for (const own of this.#ownOf(name)) {
      const need = jobOrReport(own.record, look, own.addon, { now: this.#parts.now(), windows });
      if (need === undefined) continue;
      if ('act' in need) jobs.push([need, own]);
      else reports.push([own, need]);
    }
    return { jobs, reports };
  }

  /** Asks a cluster; undefined if nothing is to be brought onto it. */
  async #look(name: string) {
    const one = this.#cluster(name);
    if (one?.secret === undefined) return undefined;
    const context = { ...this.#parts.context, signal: this.#hub.signal };
    if (this.#hub.heartbeats.isThere(name)) {
      throw new CurlewError(
        'BUSY',
        `cannot deliver to ${name}: an agent renews its Lease; curlew fleet detach ${name}`,
      );
    }
    const secret = await this.#kubeconfig(one.secret);
    const access = { name, kubeconfig: '', secret: secret.text };
    const looks = secret.problem === undefined ? await lookAtClusters([access], {}, context) : undefined;
    const look: Look = looks?.get(name) ?? { problem: secret.problem ?? '' };
    const now = this.#parts.now();
    // It may have changed meanwhile.
    const current = this.#cluster(name);
    const status = current && pushedStatus(current, look, { now, seen: this.#seen.get(name) });
    if (current !== undefined && status !== undefined) await this.#write(CLUSTERS, current, status);
    if ('problem' in look) throw new CurlewError('CLUSTER_FAILED', look.problem);
    this.#seen.set(name, now);
    return current === undefined || current.cluster.paused === true ? undefined : { access, look };
  }

  /** The Cluster now, if it is still delivered to. */
  #cluster(name: string): HubCluster | undefined {
    const own = this.#hub.clusters.get({ namespace: namespaceOf(name), name });
    const one = own && joinedIn(this.#hub, own);
    return one?.secret === undefined ? undefined : one;
  }

  /** Its text, or why there is none. */
  async #kubeconfig(secret: NonNullable<HubCluster['secret']>) {
    try {
      const read = await getSecret(this.#hub.call, secret);
      const text = read(kubeconfigIn);
      requireEmbedded(`Secret ${secret.namespace}/${secret.name}`, text);
      return { text, problem: undefined };
    } catch (error) {
      requireRefusal(error, this.#hub.signal);
      return { text: '', problem: error.message };
    }
  }

  /** With what its chart needs from Secrets. */
  async #deliverable({ record, addon }: Own): Promise<Content> {
    const content = deliverableOf(record, addon);
    const places = accessIn(record.spec);
    if (typeof content === 'string' || places === undefined) return content;
    try {
      const access = await readAccess(this.#hub.call, places);
      return { ...content, access: { ...access, values: await this.#hub.valuesObjects.read(places.values) } };
    } catch (error) {
      requireRefusal(error, this.#hub.signal);
      return error;
    }
  }

  async #deliver(
    jobs: readonly Ordered[],
    access: Parameters<typeof accessTo>[0] & { readonly name: string },
    { look, turn }: { readonly look: Reply; readonly turn: Turn },
  ): Promise<CurlewError | undefined> {
    const { request } = this.#parts;
    const context = { ...this.#parts.context, signal: this.#hub.signal };
    using file = accessTo(access);
    const opened = await openClusterApi({ kubeconfig: file.kubeconfig, isForeign: true, way: 'spec.access' }, context);
    await using lease = await holdCluster(opened, { doing: `apply the fleet of a hub to ${access.name}`, context });
    await using files = await openChannels({ ...request, channels: [] }, context);
    const contents = new Map<Job, Content>();
    for (const [job, own] of jobs) contents.set(job, await this.#deliverable(own));
    const contentFor = (job: Job) => {
      const content = contents.get(job);
      return typeof content === 'object' && !(content instanceof CurlewError) ? content : undefined;
    };
    const from = { kind: 'Channel', name: undefined, compat: 'native', entries: [] } as const;
    const runner = new Runner(
      jobs.map(([job]) => job),
      lease.cluster,
      {
        request,
        context,
        contentFor,
        live: look.live,
        answers: this.#answers,
        read: async (entry) => files.readManifest({ ...from, location: entry.place.file }, entry, context),
      },
    );
    let later: CurlewError | undefined;
    const work = async (job: Job, own: Own): Promise<void> => {
      if (!contents.has(job)) {
        contents.set(job, await this.#deliverable(own));
        runner.add(job);
      }
      const waits = await this.#deliverOne(job, own, { runner, look, content: contents.get(job) });
      later ??= waits;
    };
    const find = () => this.#needed(access.name, look).jobs;
    await eachOrdered(jobs, work, { ...turn, find, signal: lease.cluster.signal });
    return later;
  }

  /** Returns why it is tried again soon. */
  async #deliverOne(
    job: Job,
    own: Own,
    { runner, look, content }: { readonly runner: Runner; readonly look: Reply; readonly content: Content | undefined },
  ): Promise<CurlewError | undefined> {
    if (!this.#isPresent(own)) return undefined;
    const why = job.hash === '' ? undefined : content;
    if (typeof why === 'string') {
      await this.#report(own, { state: 'Failed', reason: 'Content', message: why });
      return undefined;
    }
    const under = own.record.spec.action === 'Remove' ? 'Removing' : 'Progressing';
    const waits = async (message: string): Promise<void> => {
      // What is restored has succeeded, and still counts as that.
      if (job.act !== 'restore') await this.#report(own, { state: under, reason: 'Waiting', message });
    };
    if (why instanceof CurlewError) {
      await waits(why.message);
      return why;
    }
    const before = this.#triesOf(own);
    if (job.act !== 'restore' && before === undefined) await this.#report(own, { state: under });
    const { result, reason, orphans } = await runner.run(job);
    const leftover = result === 'done' ? previousOwner(job, own.record, look) : undefined;
    if (leftover !== undefined) await runner.run({ ...job, addon: leftover, act: 'forget', hash: '' });
    const word = under === 'Removing' ? 'Removal' : 'Delivery';
    const error = runner.errors.get(job);
    const failure = failureOf(error);
    const count = (before ?? 0) + Number(failure !== 'later');
    if (error !== undefined && failure !== 'bad' && count < MAX_TRIES) {
      this.#tries.set(keyAt(own.record), { revision: own.record.spec.revision, count });
      await waits(reason);
      return error;
    }
    this.#tries.delete(keyAt(own.record));
    const isLeft = under === 'Removing' && orphans !== undefined && orphans.length > 0;
    const ended: AddonReport =
      result === 'done'
        ? { state: 'Succeeded', ...(isLeft && { reason: 'Orphaned', message: reason }) }
        : result === 'asks'
          ? { state: 'Skipped', reason: DELETIONS, message: reason }
          : { state: 'Failed', reason: word, message: reason };
    await this.#report(own, { ...ended, orphans });
    return undefined;
  }

  #triesOf({ record }: Own): number | undefined {
    const tries = this.#tries.get(keyAt(record));
    return tries?.revision === record.spec.revision ? tries.count : undefined;
  }

  /** Is it still to be as it was when its job was decided? */
  #isPresent({ record: { cluster, addon, spec } }: Own): boolean {
    const { cluster: { paused } = { paused: true } } = this.#cluster(cluster) ?? {};
    return paused !== true && this.#find(cluster, addon)?.record?.spec.revision === spec.revision;
  }

  #find(cluster: string, addon: string): HubClusterAddon | undefined {
    return this.#hub.clusterAddons.get({ namespace: namespaceOf(cluster), name: addon });
  }

  async #report({ record: { cluster, addon, spec } }: Own, report: AddonReport): Promise<void> {
    const clusterAddon = this.#find(cluster, addon);
    if (clusterAddon?.record === undefined) return;
    // What has happened is about the spec that was followed.
    const status = reportedStatus(spec, report, clusterAddon.status, this.#parts.now());
    if (status !== undefined) await this.#write(CLUSTER_ADDONS, clusterAddon, status);
  }

  async #write(
    resource: Resource,
    { at, status: before }: HubCluster | HubClusterAddon,
    status: Values,
  ): Promise<void> {
    const { clusters, clusterAddons } = this.#hub;
    const changed = await patchStatus(this.#hub, resource, { at, status, before });
    if (changed !== undefined) (resource === CLUSTERS ? clusters : clusterAddons).put(changed);
  }
}

/** What is ordered on a cluster. */
function ordersOn({ secret, cluster }: HubCluster, own: readonly Own[]): string {
  return JSON.stringify([secret, cluster.paused, own.map(({ order }) => order)]);
}

function orderOf({ addon: name, spec }: ClusterAddon, addon: HubAddon | undefined, now: number): string {
  const { adopt, orders } = addon?.addon ?? {};
  return JSON.stringify([name, spec.revision, spec.specHash, spec.action, adopt, addon?.drift, retryAt(orders, now)]);
}

/** What the download of a chart needs from Secrets of the hub. */
export async function readAccess(
  call: Call,
  { logins, authorities, trustsAll }: NonNullable<ReturnType<typeof accessIn>>,
): Promise<ChartAccess> {
  const textOf = async (place: typeof logins): Promise<string | undefined> =>
    place && (await getSecret(call, place))((secret, title) => textIn(secret, place.key, title));
  return { logins: await textOf(logins), authorities: await textOf(authorities), trustsAll };
}
