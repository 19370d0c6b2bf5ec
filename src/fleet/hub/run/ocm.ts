/** Add-ons of Open Cluster Management in a hub: they become FleetAddons. */
import { groupBy } from '../../../core/group-by.ts';
import { isObject } from '../../../core/json.ts';
import { FROM, namespaceOf, type HubAddon, type HubCluster } from '../observe.ts';
import {
  managementStatus,
  fleetOf,
  heldStatus,
  newProblems,
  onClusterStatus,
  readOcmObject,
  type OcmFleet,
  type OcmObject,
} from '../ocm.ts';
import { FOREIGN_KINDS } from '../../upstream/foreign-kinds.ts';
import { createObject } from '../../../cluster/kube/objects.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import { Contents } from '../../rollout/content.ts';
import type { ClusterAddon } from '../../rollout/fleet.ts';
import { eachJob, type Errand } from './jobs.ts';
import {
  addFinalizer,
  finalizeForeign,
  putAddon,
  ownAddons,
  foreignSourceOf,
  writeStatus,
  type ForeignSource,
  type UpstreamParts,
} from './generated-addons.ts';
import { tell } from './events.ts';
import { deleteGenerated, resourceOf, type Hub, type Passed } from './hub-pass.ts';

const ADDONS = resourceOf('FleetAddon');
/** What all add-ons depend on: while one cannot be read, they stay as they are. */
const SHARED: ReadonlySet<string> = new Set([
  'ManagedCluster',
  'ManagedClusterSet',
  'ManagedClusterSetBinding',
  'Placement',
  'PlacementDecision',
]);

/** Seconds that a scheduler has to decide about a Placement after it was seen first. Without a trace of a scheduler then, none runs. */
const DECIDED_WITHIN = 10;

/** Does it depend on the clusters that it has chosen before? */
function isLimiting(spec: unknown): boolean {
  return isObject(spec) && spec['numberOfClusters'] !== undefined;
}

export class OcmAddons {
  readonly #sources: ReadonlyMap<string, ForeignSource<OcmObject>>;
  readonly #backoff = new Backoff();
  /** Why an add-on stays as it is, as the last event says. */
  readonly #told = new Map<string, string>();
  readonly #note: UpstreamParts['note'];
  /** When each Placement was seen first, by its uid, in seconds since 1970: a server's clock may be another. */
  #seen: ReadonlyMap<string, number> = new Map();
  #last: { readonly key: string; readonly fleet: OcmFleet } | undefined;
  /** The same object as long as nothing has changed: contents are remembered by it. */
  #joined = new WeakMap<HubCluster, HubCluster>();

  constructor({ api, find, onChange, note }: UpstreamParts) {
    this.#note = note;
    const kinds = FOREIGN_KINDS.clustermanagementaddons.map(({ kind }) => find(kind));
    this.#sources = new Map(
      kinds.map((one) => [one.kind, foreignSourceOf(api, one, { read: readOcmObject, onChange })]),
    );
  }

  get problem(): string | undefined {
    return [...this.#sources.values()].find(({ watch }) => watch.problem !== undefined)?.watch.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#sources.values()].map(async ({ watch }) => watch.run(signal)));
  }

  /** With the labels of its ManagedCluster, and one by which its name can be selected. */
  joined(own: HubCluster): HubCluster {
    const labels = this.#last?.fleet.labels.get(own.cluster.name);
    if (labels === undefined) return own;
    const joined = this.#joined.get(own) ?? { ...own, cluster: { ...own.cluster, labels } };
    this.#joined.set(own, joined);
    return joined;
  }

  async pass(hub: Hub, now: number): Promise<Passed> {
    const clusters = hub.clusters.values().flatMap((one) => one ?? []);
    const objects = [...this.#sources.values()].flatMap(({ watch }) => watch.values());
    const recent = this.#recent(objects, now);
    const records = groupBy(
      hub.clusterAddons.values().flatMap((one) => one?.record ?? []),
      ({ addon }) => addon,
    );
    const has = new Map([...records].map(([addon, all]) => [addon, new Set(all.map(({ cluster }) => cluster))]));
    const isLimited = objects.some(({ kind, value }) => kind === 'Placement' && isLimiting(value['spec']));
    const key = JSON.stringify([
      [...recent.keys()],
      isLimited && [...has].map(([addon, names]) => [addon, ...names]),
      objects.map(({ from, at }) => [from, at.resourceVersion]),
      clusters.map(({ cluster }) => [cluster.name, cluster.labels]),
    ]);
    const same = this.#last?.key === key ? this.#last.fleet : undefined;
    const fleet =
      same ??
      fleetOf(
        objects,
        clusters.map(({ cluster }) => cluster),
        { recent: new Set(recent.keys()), has },
      );
    if (same === undefined) this.#joined = new WeakMap();
    this.#last = { key, fleet };
    for (const text of fleet.notes) this.#note(text);
    const around = {
      hub,
      fleet,
      now,
      shared: problemIn(
        objects.filter(({ kind }) => SHARED.has(kind)),
        fleet,
      ),
      made: groupBy(hub.addons.values(), ({ origin }) => origin?.from),
      records,
    };
    const addons = objects.filter(({ kind }) => kind === 'ClusterManagementAddOn');
    const jobs = addons.map((one): Errand => ({ key: one.from, run: async () => this.#take(one, around) }));
    const { problem } = await eachJob(jobs, { signal: hub.signal, backoff: this.#backoff });
    const settledMs = Math.min(...recent.values()) * 1000;
    return { problem, nextMs: Math.min(settledMs, this.#backoff.keep(new Set(jobs.map((job) => job.key)))) };
  }

  /** Placements that a scheduler may not have seen yet, by uid, with the seconds that it still has. */
  #recent(objects: readonly OcmObject[], now: number): ReadonlyMap<string, number> {
    const uids = objects.flatMap(({ kind, at }) => (kind === 'Placement' ? [at.uid] : []));
    this.#seen = new Map(uids.map((uid) => [uid, this.#seen.get(uid) ?? now]));
    const waits = [...this.#seen].map(([uid, since]) => [uid, since + DECIDED_WITHIN - now] as const);
    return new Map(waits.filter(([, seconds]) => seconds > 0));
  }

  #source(kind: string): ForeignSource<OcmObject> {
    const source = this.#sources.get(kind);
    if (source === undefined) throw new TypeError(`${kind} is not watched`);
    return source;
  }

  async #take(one: OcmObject, around: Around): Promise<void> {
    const { hub, fleet, shared, made: before, now } = around;
    const source = this.#source('ClusterManagementAddOn');
    const wanted = fleet.addons.get(one.from) ?? [];
    const names = wanted.map(({ name }) => name);
    const mine = new Set([...(before.get(one.from) ?? []).map(({ addon }) => addon.name), ...names]);
    const own = (): readonly HubAddon[] => ownAddons(hub, one.from, mine);
    if (one.isDeleting) return finalizeForeign(hub, source, { one, addons: own(), leave: [] });
    const onClusters = fleet.onClusters.get(one.at.name) ?? [];
    if (fleet.early.has(one.from)) return;
    const problem =
      fleet.problems.get(one.from) ?? (wanted.length > 0 ? (shared ?? problemIn(onClusters, fleet)) : undefined);
    if (problem !== undefined) return this.#hold(one, problem, { ...around, names, onClusters });
    this.#told.delete(one.from);
    // One without templates is a program of its own.
    if (wanted.length === 0) return;
    const held = await addFinalizer(hub, source, one);
    for (const { problem, ...made } of wanted) {
      if (problem !== undefined) continue;
      const why = await putAddon(
        hub,
        made.name,
        made,
        own().find(({ addon }) => addon.name === made.name),
      );
      if (why !== undefined) this.#note(`${one.from}: ${why}`);
    }
    for (const { addon, at } of own()) {
      if (!names.includes(addon.name) && addon.deleting !== true) await deleteGenerated(hub, ADDONS, at);
    }
    const addons = names.map((name) => own().find(({ addon }) => addon.name === name));
    await this.#onClusters(one, { ...around, addons, onClusters });
    const problems = wanted.map(({ problem }) => problem);
    const told = newProblems(held, problems);
    await writeStatus(hub, source, held, managementStatus(held, { addons, problems, configs: fleet.configs, now }));
    for (const message of told) {
      const happened = { type: 'Warning', reason: 'PlacementNotFollowed', message } as const;
      await tell(hub, { resource: source.resource, at: one.at }, happened);
    }
  }

  /** Says why it stays as it is, in conditions and one event. */
  async #hold(
    one: OcmObject,
    message: string,
    { hub, fleet: { configs }, records, now, names, onClusters }: Around & Named,
  ): Promise<void> {
    const source = this.#source('ClusterManagementAddOn');
    const held = 'ConfigurationNotFollowed';
    const addons = names.map((name) => hub.addons.get({ name }));
    const problems = one.layers.placements.map(() => message);
    // An add-on that cannot be read at all may be a program of its own.
    if (names.length > 0) {
      await writeStatus(hub, source, one, managementStatus(one, { addons, problems, held, configs, now }));
      const has = new Set(names.flatMap((name) => (records.get(name) ?? []).map(({ cluster }) => cluster)));
      for (const own of onClusters) {
        const isSelected = problems.length === 0 || has.has(own.at.namespace ?? '');
        if (isSelected) await writeStatus(hub, this.#source('ManagedClusterAddOn'), own, heldStatus(own, message, now));
      }
    }
    if (this.#told.get(one.from) === message) return;
    this.#told.set(one.from, message);
    await tell(hub, { resource: source.resource, at: one.at }, { type: 'Warning', reason: held, message });
  }

  /** Statuses of its ManagedClusterAddOns, which are created where a placement has selected a cluster. */
  async #onClusters(
    one: OcmObject,
    {
      hub,
      fleet,
      records,
      now,
      addons,
      onClusters,
    }: Around & { readonly addons: readonly (HubAddon | undefined)[]; readonly onClusters: readonly OcmObject[] },
  ): Promise<void> {
    const source = this.#source('ManagedClusterAddOn');
    const { name, uid } = one.at;
    const present = new Map(onClusters.map((object) => [object.at.namespace ?? '', object]));
    const there = new Set<string>();
    for (const [at, addon] of addons.entries()) {
      if (addon === undefined) continue;
      const contents = new Contents(addon.addon, hub.memo);
      for (const record of records.get(addon.addon.name) ?? []) {
        const { cluster: namespace } = record;
        const cluster = hub.clusters.get({ namespace: namespaceOf(namespace), name: namespace });
        there.add(namespace);
        let own = present.get(namespace);
        if (own === undefined && one.layers.placements.length > 0 && record.spec.action === 'Install') {
          const owner = {
            apiVersion: this.#source('ClusterManagementAddOn').resource.apiVersion,
            kind: one.kind,
            name,
            uid,
          };
          const metadata = { namespace, name, annotations: { [FROM]: one.from }, ownerReferences: [owner] };
          const created = await createObject(hub.call, source.resource, {
            namespace,
            name,
            value: { metadata, spec: {} },
          });
          // A cluster that is not one of Open Cluster Management has no namespace there.
          if (created === undefined) continue;
          source.watch.put(created);
          own = source.read(created);
        }
        if (own === undefined || cluster === undefined) continue;
        const content = contents.contentOf(this.joined(cluster).cluster, record);
        const isHeard = cluster.cluster.available;
        const registration = hub.rights?.registrationOf(record);
        const { configs } = fleet;
        const seen = { addon: one, at, record, content, isHeard, registration, configs, now };
        const status = onClusterStatus(own, seen);
        await writeStatus(hub, source, own, status);
      }
    }
    for (const own of onClusters) {
      const isOurs = own.value.metadata.annotations[FROM] === one.from;
      if (isOurs && !there.has(own.at.namespace ?? '') && !own.isDeleting)
        await deleteGenerated(hub, source.resource, own.at);
    }
  }
}

/** The first problem of these objects, with whose it is. */
function problemIn(objects: readonly OcmObject[], { problems }: OcmFleet): string | undefined {
  const first = objects.find(({ from }) => problems.has(from));
  return first && `${first.from}: ${problems.get(first.from) ?? ''}`;
}

interface Named {
  /** What it becomes. */
  readonly names: readonly string[];
  readonly onClusters: readonly OcmObject[];
}

interface Around {
  readonly hub: Hub;
  readonly fleet: OcmFleet;
  /** Why what all add-ons depend on cannot be read. */
  readonly shared: string | undefined;
  /** By the object that they are made from. */
  readonly made: ReadonlyMap<string | undefined, readonly HubAddon[]>;
  /** By their add-on. */
  readonly records: ReadonlyMap<string, readonly ClusterAddon[]>;
  readonly now: number;
}
