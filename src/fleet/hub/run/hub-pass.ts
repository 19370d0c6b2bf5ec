/** One pass of the controller: what a step of the fleet writes, into the objects of the hub. */
import { CurlewError } from '../../../core/errors.ts';
import { isObject } from '../../../core/json.ts';
import { annotationChanges, firstAnnotations } from '../changed-by-others.ts';
import { withChannel, type HubChannel } from '../channel.ts';
import { HELD_BY } from '../manifests.ts';
import {
  FINALIZER,
  namespaceOf,
  type HubAddon,
  type HubCluster,
  type HubClusterAddon,
  type Version,
} from '../observe.ts';
import { HUB_KINDS, type HubKind } from '../hub-kinds.ts';
import { withinLimit } from '../status-limit.ts';
import { happened, specObject, statusObject } from '../write.ts';
import { CHANNEL_API_VERSION } from '../../../cluster/channel/channel.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { createObject, deleteObject, getObject, patchObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import type { Resource } from '../../../cluster/kube/resources.ts';
import type { Watch } from '../../../cluster/kube/watch.ts';
import type { Backoff } from '../../../platform/limit/backoff.ts';
import type { Memo } from '../../rollout/content.ts';
import type { Cluster, FleetAddonStatus, Observed, Values, Writes } from '../../rollout/fleet.ts';
import { step } from '../../rollout/step.ts';
import type { AddonRights } from './addon-rights.ts';
import type { Heartbeats } from './heartbeats.ts';
import { tell } from './events.ts';
import { eachJob, type Errand } from './jobs.ts';
import type { StoredStatuses } from './stored-statuses.ts';
import { ValuesObjects } from './values-objects.ts';
import { NAMESPACES } from '../../../cluster/kube/core-kinds.ts';

const DEFINITIONS: Resource = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export function resourceOf(kind: HubKind): Resource {
  const { plural, scope } = HUB_KINDS[kind];
  return { apiVersion: CHANNEL_API_VERSION, kind, plural, namespaced: scope === 'Namespaced' };
}

const ADDONS = resourceOf('FleetAddon');
const CLUSTERS = resourceOf('Cluster');
export const CLUSTER_ADDONS = resourceOf('ClusterAddon');

/** Objects of other programs that the controller takes. */
interface UpstreamPass {
  /** Names of their definitions. */
  readonly definitions: readonly string[];
  /** Why they may not be all, or be old. */
  readonly problem: string | undefined;
  /** A Cluster with what they say of it; undefined if it has gone there. */
  readonly joined: (own: HubCluster) => HubCluster | undefined;
  readonly pass: (hub: Hub, now: number) => Promise<Passed>;
}

export interface Hub {
  /** Identifier of the hub: of its namespace kube-system. */
  readonly uid: string;
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly clusters: Watch<HubCluster | undefined>;
  readonly addons: Watch<HubAddon>;
  readonly clusterAddons: Watch<HubClusterAddon | undefined>;
  readonly channels: Watch<HubChannel>;
  /** The Leases of agents, which `heartbeats` gets. */
  readonly leases: Watch<void>;
  readonly heartbeats: Heartbeats;
  /** Objects of other programs that the controller takes; undefined if it takes none. */
  readonly upstream: UpstreamPass | undefined;
  /** Rights of its add-ons; undefined if it takes none that have some. */
  readonly rights?: Pick<AddonRights, 'registrationOf'> | undefined;
  /** For writes that were refused, by object. */
  readonly backoff: Backoff;
  readonly memo: Memo;
  readonly statuses: StoredStatuses;
  readonly valuesObjects: ValuesObjects;
  readonly report: (text: string) => void;
}

export interface Passed {
  /** Why nothing was written, or not all. */
  readonly problem: string | undefined;
  /** Milliseconds after which the next pass has something to do; infinite if only a change leads to one. */
  readonly nextMs: number;
}

export interface HubPassed extends Passed {
  /** What is known was whole, so that the fleet was decided about. A write that was refused is tried again, and holds no other. */
  readonly isDecided: boolean;
}

/** All that are there, with what Cluster API knows of its own. */
export function clustersOf(hub: Pick<Hub, 'clusters' | 'upstream'>): readonly HubCluster[] {
  return hub.clusters.values().flatMap((one) => (one && joinedIn(hub, one)) ?? []);
}

/** A Cluster with what Cluster API knows of it; undefined if it has gone there. */
export function joinedIn({ upstream }: Pick<Hub, 'upstream'>, one: HubCluster): HubCluster | undefined {
  return upstream === undefined ? one : upstream.joined(one);
}

/** What has changed meanwhile is left to the next pass. `now` in seconds since 1970. */
export async function passHub(hub: Hub, now: number): Promise<HubPassed> {
  // An older hub has no channels, and no add-on that names one.
  const channels = hub.addons.values().some(({ channel }) => channel !== undefined) ? hub.channels : undefined;
  const problem = [hub.clusters, hub.addons, hub.clusterAddons, hub.leases, hub.upstream, channels]
    .map((one) => one?.problem)
    .find((one) => one !== undefined);
  hub.heartbeats.hears(problem === undefined);
  if (problem !== undefined) return { problem, nextMs: Infinity, isDecided: false };
  const taken = await hub.upstream?.pass(hub, now);
  const joined = hub.addons.values().map((one) => {
    return withChannel(one, one.channel && hub.channels.get({ name: one.channel.name }));
  });
  const addons = await hub.valuesObjects.complete(joined, hub.signal);
  const all = new Map(addons.map((one) => [one.addon.name, one]));
  const hasHubValues = addons.some(({ valuesFrom }) => valuesFrom.length > 0);
  const records = new Map<string, HubClusterAddon>();
  for (const one of hub.clusterAddons.values()) {
    if (one?.record !== undefined) records.set(keyAt(one.record), one);
  }
  const clusters = clustersOf(hub);
  const observed: Observed = {
    complete: true,
    // A Cluster whose origin has gone is still there.
    emptied: hub.clusters.values().some((one) => one !== undefined) && clusters.length === 0,
    heardSince: now - hub.heartbeats.heardFor,
    clusters: clusters.map((one) => present(one, hub, now)),
    addons: addons.map(({ addon, problem: wrong }) => (wrong === undefined ? addon : { ...addon, problem: wrong })),
    clusterAddons: [...records.values()].flatMap(({ record }) => record ?? []),
  };
  let writes = step(observed, now, hub.memo);
  if (takesAway(writes)) {
    const doubt = await goneKind(hub);
    if (doubt !== undefined) return { problem: doubt, nextMs: Infinity, isDecided: false };
    const begun = new Set(writes.put.map(({ cluster }) => cluster));
    const leaving = observed.clusters.filter(({ name, deleting }) => deleting !== undefined && begun.has(name));
    const lost = new Set<string>();
    for (const { name } of leaving) if (await goesWithNamespace(hub, name)) lost.add(name);
    writes = { ...writes, put: writes.put.filter(({ cluster }) => !lost.has(cluster)) };
  }
  const done = new Pass(hub, { now, all, clusters, records, writes });
  const problemOfWrites = await done.run();
  return {
    problem: problemOfWrites ?? taken?.problem,
    isDecided: true,
    nextMs: Math.min(
      done.nextMs,
      taken?.nextMs ?? Infinity,
      (writes.recheckAfter ?? Infinity) * 1000,
      hasHubValues ? ValuesObjects.keptMs : Infinity,
    ),
  };
}

/** A cluster whose agent is silent does not answer, whatever it has said last; one that is delivered to needs none. */
function present({ cluster, secret }: HubCluster, { heartbeats }: Hub, now: number): Cluster {
  const silence = secret === undefined ? heartbeats.silence(cluster.name) : undefined;
  return silence === undefined || !cluster.available ? cluster : { ...cluster, available: false, since: now - silence };
}

export function keyAt({ cluster, addon }: { readonly cluster: string; readonly addon: string }): string {
  return `${cluster}/${addon}`;
}

function takesAway({ put, drop, released }: Writes): boolean {
  return drop.length + released.length > 0 || put.some(({ spec }) => spec.action === 'Remove');
}

/** With the definition of a kind, the API server deletes all its objects. The add-ons themselves must stay. */
async function goneKind({ call, upstream }: Hub): Promise<string | undefined> {
  for (const name of [...HELD_BY, ...(upstream?.definitions ?? [])]) {
    const definition = await getObject(call, DEFINITIONS, { name });
    const isHere = definition !== undefined && typeof definition.metadata.deletionTimestamp !== 'string';
    if (!isHere) return `nothing is removed from clusters: the CustomResourceDefinition ${name} is deleted`;
  }
  return undefined;
}

/** Deletes what is made from objects of other programs. Throws `CLUSTER_FAILED` if those may have gone only with a definition. */
export async function deleteGenerated(hub: Hub, resource: Resource, at: Version): Promise<void> {
  const doubt = await goneKind(hub);
  if (doubt !== undefined) throw new CurlewError('CLUSTER_FAILED', doubt);
  await deleteObject(hub.call, resource, at);
}

function clusterKey(name: string): string {
  return `Cluster ${name}`;
}

/** With a namespace, the API server deletes all in it. The add-ons themselves must stay. */
async function goesWithNamespace({ call }: Hub, cluster: string): Promise<boolean> {
  const namespace = await getObject(call, NAMESPACES, { name: namespaceOf(cluster) });
  return typeof namespace?.metadata.deletionTimestamp === 'string';
}

interface PassParts {
  readonly now: number;
  readonly all: ReadonlyMap<string, HubAddon>;
  readonly clusters: readonly HubCluster[];
  readonly records: ReadonlyMap<string, HubClusterAddon>;
  readonly writes: Writes;
}

class Pass {
  nextMs = Infinity;
  readonly #hub: Hub;
  readonly #parts: PassParts;
  #problem: string | undefined;
  /** What was refused in this pass or shortly before. */
  readonly #held = new Set<string>();
  /** Add-ons that begin on a cluster. */
  readonly #begun: ReadonlySet<string>;
  readonly #statuses: ReadonlyMap<string, FleetAddonStatus>;

  constructor(hub: Hub, parts: PassParts) {
    const { put, status } = parts.writes;
    this.#hub = hub;
    this.#parts = parts;
    this.#begun = new Set(put.flatMap(({ addon, spec }) => (spec.action === 'Install' ? [addon] : [])));
    this.#statuses = new Map(status.map((one) => [one.addon, one.status]));
  }

  /** Returns why something was not written. The status comes first: an approval is used up before something begins under it. */
  async run(): Promise<string | undefined> {
    const { all, writes } = this.#parts;
    const jobs = [...all.values()].map((one): Errand => ({
      key: one.addon.name,
      run: async () => this.#writeAddon(one),
    }));
    await this.#each(jobs);
    const bound = this.#clusters();
    await this.#each(bound);
    const isFree = ({ addon, cluster = '' }: { readonly addon: string; readonly cluster?: string }): boolean =>
      !this.#held.has(addon) && !this.#held.has(clusterKey(cluster));
    const puts = writes.put.filter(isFree).map((one): Errand => ({ key: keyAt(one), run: async () => this.#put(one) }));
    const drops = writes.drop
      .filter(isFree)
      .map((one): Errand => ({ key: keyAt(one), run: async () => this.#drop(one) }));
    await this.#each([...puts, ...drops]);
    const drifts = annotationChanges(this.#parts).map((one): Errand => ({
      key: one.key,
      run: async () => this.#annotate(one),
    }));
    await this.#each(drifts);
    const isGone = ({ addon, finalizers }: HubAddon): boolean =>
      writes.released.includes(addon.name) && finalizers.includes(FINALIZER) && isFree({ addon: addon.name });
    const heldAddons = new Set(writes.drop.flatMap((one) => (this.#held.has(keyAt(one)) ? [one.addon] : [])));
    const gone = [...all.values()].filter((one) => isGone(one) && !heldAddons.has(one.addon.name));
    await this.#each(gone.map((one): Errand => ({ key: one.addon.name, run: async () => this.#release(one) })));
    const keys = [...jobs, ...bound, ...puts, ...drops, ...drifts].map(({ key }) => key);
    this.nextMs = this.#hub.backoff.keep(new Set(keys));
    return this.#problem;
  }

  /** A cluster that has add-ons, or is about to, goes only after them. */
  #clusters(): readonly Errand[] {
    const { records, writes } = this.#parts;
    const has = new Set([...records.values()].map(({ record }) => record?.cluster));
    for (const { cluster } of writes.put) has.add(cluster);
    const { call, clusters } = this.#hub;
    return clusters.values().flatMap((one): readonly Errand[] => {
      if (one === undefined) return [];
      const { cluster, finalizers } = one;
      const isBound = finalizers.includes(FINALIZER);
      const binds = !isBound && cluster.deleting === undefined && has.has(cluster.name);
      if (!binds && !(isBound && writes.left.includes(cluster.name))) return [];
      const run = async (): Promise<void> => clusters.put(await bind(call, CLUSTERS, one, binds));
      return [{ key: clusterKey(cluster.name), run }];
    });
  }

  async #each(jobs: readonly Errand[]): Promise<void> {
    const { held, problem } = await eachJob(jobs, this.#hub);
    for (const key of held) this.#held.add(key);
    this.#problem ??= problem;
  }

  /** Finalizer and status of an add-on, if they are to change. */
  async #writeAddon(object: HubAddon): Promise<void> {
    const { now } = this.#parts;
    const { call, addons } = this.#hub;
    const { addon, finalizers } = object;
    let { at } = object;
    const isHeld = finalizers.includes(FINALIZER);
    if (this.#begun.has(addon.name) && !isHeld && addon.deleting !== true) {
      const bound = await bind(call, ADDONS, object, true);
      addons.put(bound);
      at = bound.metadata;
    }
    const after = this.#statuses.get(addon.name) ?? addon.status;
    if (after !== undefined) await this.#writeStatus(object, { at, after, now });
  }

  /** After its records are gone: without it they would stay. */
  async #release({ addon: { name } }: HubAddon): Promise<void> {
    const { call, addons } = this.#hub;
    const present = addons.get({ name });
    if (present !== undefined) addons.put(await bind(call, ADDONS, present, false));
  }

  async #writeStatus(
    object: HubAddon,
    { at, after, now }: { readonly at: Version; readonly after: FleetAddonStatus; readonly now: number },
  ): Promise<void> {
    const status = withinLimit(statusObject(after, object, now), after.reasons);
    const changed = await patchStatus(this.#hub, ADDONS, { at, status, before: object.status });
    if (changed === undefined) return;
    this.#hub.addons.put(changed);
    for (const one of happened(object.addon.status, object, after))
      await tell(this.#hub, { resource: ADDONS, at }, one);
  }

  async #put({ cluster, addon, spec }: Writes['put'][number]): Promise<void> {
    const { call, uid, clusterAddons } = this.#hub;
    const stored = this.#parts.records.get(keyAt({ cluster, addon }));
    const value = specObject(spec, uid, stored?.record?.config);
    const named = { namespace: namespaceOf(cluster), name: addon };
    if (stored !== undefined) {
      const changes = [{ op: 'replace', path: '/spec', value }];
      return clusterAddons.put(await patchAt(call, CLUSTER_ADDONS, { at: stored.at, changes }));
    }
    const { all, clusters } = this.#parts;
    const own = clusters.find((one) => one.cluster.name === cluster);
    const metadata = { ...named, ...firstAnnotations(all.get(addon), own) };
    const created = await createObject(call, CLUSTER_ADDONS, { ...named, value: { metadata, spec: value } });
    if (created !== undefined) return clusterAddons.put(created);
    throw new CurlewError(
      'BUSY',
      `cannot create ClusterAddon ${named.namespace}/${addon}: it exists, or its namespace does not`,
    );
  }

  /** What this pass has written is left to the next one. */
  async #annotate({ at, changes }: ReturnType<typeof annotationChanges>[number]): Promise<void> {
    const { call, clusterAddons } = this.#hub;
    if (clusterAddons.get(at)?.at.resourceVersion === at.resourceVersion)
      clusterAddons.put(await patchAt(call, CLUSTER_ADDONS, { at, changes }));
  }

  async #drop(key: Writes['drop'][number]): Promise<void> {
    const { call, clusterAddons, report } = this.#hub;
    const stored = this.#parts.records.get(keyAt(key));
    if (stored === undefined) return;
    await deleteObject(call, CLUSTER_ADDONS, stored.at);
    clusterAddons.drop(stored.at);
    const { message = '' } = stored.record?.status ?? {};
    const left = key.reason === 'Orphaned' && message !== '' ? `: ${message}` : '';
    report(`${key.cluster}: ${key.addon} leaves the hub: ${key.reason}${left}`);
  }
}

/** Writes a status, unless the stored one is what the server keeps of it. */
export async function patchStatus(
  { call, statuses }: Pick<Hub, 'call' | 'statuses'>,
  resource: Resource,
  { at, status, before }: { readonly at: Version; readonly status: Values; readonly before: unknown },
): Promise<LiveObject | undefined> {
  if (statuses.isSame(at.uid, status, before)) return undefined;
  const changes = [{ op: 'add', path: '/status', value: status }];
  const changed = await patchAt(call, resource, { at, changes, subresource: 'status' });
  statuses.remember(resource, at.uid, status, changed['status']);
  return changed;
}

/** With the finalizer, by which a deletion waits until the add-ons are gone, or without it. */
export async function bind(
  call: Call,
  resource: Resource,
  { at, finalizers }: Pick<HubCluster, 'at' | 'finalizers'>,
  isBound: boolean,
): Promise<LiveObject> {
  const others = finalizers.filter((one) => one !== FINALIZER);
  const value = isBound ? [...others, FINALIZER] : others;
  return patchAt(call, resource, { at, changes: [{ op: 'add', path: '/metadata/finalizers', value }] });
}

/** Only if it is the object, and the version of it, by which was decided. */
export async function patchAt(
  call: Call,
  resource: Resource,
  {
    at,
    changes,
    subresource,
  }: { readonly at: Version; readonly changes: readonly object[]; readonly subresource?: 'status' | undefined },
): Promise<LiveObject> {
  const operations = [{ op: 'test', path: '/metadata/resourceVersion', value: at.resourceVersion }, ...changes];
  const changed = await patchObject(call, resource, at, { operations, subresource });
  if (changed !== undefined && isObject(changed)) return changed;
  throw new CurlewError('BUSY', `cannot change ${resource.kind} ${at.name}: it has changed meanwhile`);
}
