/** HelmChartProxies in a hub, with the clusters of Cluster API next to them: they become FleetAddons and Clusters. */
import { joinCapi, readCapiCluster, type CapiCluster } from '../capi.ts';
import { proxyStatus, readProxy, type HubProxy } from '../helm-proxies.ts';
import { FINALIZER, hashOfMade, namespaceOf, type HubAddon, type HubCluster, type Made } from '../observe.ts';
import { accessIn } from '../push.ts';
import type { Chart } from '../../../cluster/channel/channel.ts';
import { canonicalJson } from '../../../core/digest.ts';
import { createNamespace, getObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import { groupOf, type Resource } from '../../../cluster/kube/resources.ts';
import { Watch } from '../../../cluster/kube/watch.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import type { Values } from '../../rollout/fleet.ts';
import { eachJob, type Errand } from './jobs.ts';
import { NewestVersions } from './newest-versions.ts';
import { readAccess } from './push.ts';
import {
  addFinalizer,
  finalizeForeign,
  putAddon,
  ownAddons,
  foreignSourceOf,
  typed,
  writeMade,
  writeStatus,
  type ForeignSource,
  type UpstreamParts,
} from './generated-addons.ts';
import { bind, clustersOf, deleteGenerated, resourceOf, type Hub, type Passed } from './hub-pass.ts';

const CLUSTERS = resourceOf('Cluster');
/** Finalizer of the provider, which no longer runs when a controller takes its objects. */
const PROVIDER = 'helmchartproxy.addons.cluster.x-k8s.io';

const NO_ROOTS: Values = {};

interface Joined {
  readonly capi: CapiCluster;
  readonly roots: Values;
  readonly joined: HubCluster;
}

export class HelmProxies {
  readonly #clusters: Watch<CapiCluster>;
  readonly #proxies: ForeignSource<HubProxy>;
  readonly #served: readonly Resource[];
  readonly #backoff = new Backoff();
  readonly #note: UpstreamParts['note'];
  readonly #findNewest: UpstreamParts['findNewest'];
  readonly #versions: NewestVersions;
  /** What templates see besides a Cluster, and the version of the Cluster by which that was read. */
  readonly #roots = new Map<string, { readonly version: string; readonly roots: Values }>();
  /** The same object as long as nothing has changed: contents are remembered by it. */
  readonly #joined = new WeakMap<HubCluster, Joined>();

  constructor({ api, find, served, onChange, findNewest, note }: UpstreamParts) {
    this.#note = note;
    this.#findNewest = findNewest;
    this.#versions = new NewestVersions(onChange);
    const clusters = find('Cluster');
    const resource = find('HelmChartProxy');
    this.#served = served;
    const look = typed(clusters, readCapiCluster);
    this.#clusters = new Watch(api, { resource: clusters, look, onChange });
    this.#proxies = foreignSourceOf(api, resource, { read: readProxy, onChange });
  }

  get problem(): string | undefined {
    return this.#clusters.problem ?? this.#proxies.watch.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#clusters.run(signal), this.#proxies.watch.run(signal)]);
  }

  /** A Cluster with what Cluster API has of it; undefined if it has gone there. */
  joined(own: HubCluster): HubCluster | undefined {
    if (own.origin === undefined) return own;
    const { namespace = '' } = /^Cluster (?<namespace>[^/]+)\//.exec(own.origin.from)?.groups ?? {};
    const capi = this.#clusters.get({ namespace, name: own.cluster.name });
    if (capi === undefined) return undefined;
    const roots = this.#roots.get(capi.from)?.roots ?? NO_ROOTS;
    const last = this.#joined.get(own);
    if (last?.capi === capi && last.roots === roots) return last.joined;
    const joined = joinCapi(own, capi, roots);
    this.#joined.set(own, { capi, roots, joined });
    return joined;
  }

  async pass(hub: Hub, now: number): Promise<Passed> {
    const [capi, proxies] = [this.#clusters.values(), this.#proxies.watch.values()];
    const needsRoots = proxies.some((one) => one.needsRoots);
    const gone = hub.clusters.values().filter((one) => one !== undefined && this.joined(one) === undefined);
    const limits = { signal: hub.signal, backoff: this.#backoff };
    const clusters = [
      ...capi.map((one): Errand => ({ key: one.from, run: async () => this.#takeCluster(hub, one, needsRoots) })),
      ...gone.flatMap((one): Errand[] =>
        one === undefined ? [] : [{ key: `-${one.cluster.name}`, run: async () => dropCluster(hub, one) }],
      ),
    ];
    const first = await eachJob(clusters, limits);
    const around = { hub, clusters: clustersOf(hub), now };
    const addons = proxies.map((one): Errand => ({ key: one.from, run: async () => this.#takeProxy(one, around) }));
    const second = await eachJob(addons, limits);
    const laterMs = this.#backoff.keep(new Set([...clusters, ...addons].map(({ key }) => key)));
    const followed = new Set(proxies.flatMap((one) => (one.follows ? [followedKey(one)] : [])));
    const nextMs = Math.min(laterMs, this.#versions.keep(followed, now));
    return { problem: first.problem ?? second.problem, nextMs };
  }

  async #takeCluster(hub: Hub, one: CapiCluster, needsRoots: boolean): Promise<void> {
    const { from, made, name } = one;
    if (typeof made === 'string') return this.#note(`${from} is left alone: ${made}`);
    if (needsRoots) await this.#readRoots(hub, one);
    const namespace = namespaceOf(name);
    const cluster = hub.clusters.get({ namespace, name });
    if (cluster !== undefined && cluster.origin?.from !== from) {
      return this.#note(`${from} is left alone: Cluster ${name} of the fleet is not made from it`);
    }
    if (cluster?.origin?.hash === hashOfMade(made)) return;
    if (cluster === undefined) await createNamespace(hub.call, namespace);
    hub.clusters.put(await writeMade(hub, CLUSTERS, { namespace, name, made, at: cluster?.at }));
  }

  async #readRoots({ call }: Hub, { from, resourceVersion: version, references }: CapiCluster): Promise<void> {
    if (this.#roots.get(from)?.version === version) return;
    const roots: Record<string, LiveObject> = {};
    for (const { root, kind, group, ...named } of references) {
      const resource = this.#served.find((one) => one.kind === kind && groupOf(one) === group);
      const object = resource && (await getObject(call, resource, named));
      if (object !== undefined) roots[root] = object;
    }
    this.#roots.set(from, { version, roots });
  }

  /** With the newest version of its chart, or why that is not known. */
  #atNewest(hub: Hub, proxy: HubProxy, made: Made, now: number): Made | string {
    const { source } = made.spec as { readonly source: { readonly chart: Chart & Values } };
    const find = async (): Promise<string> => {
      const places = accessIn({ source });
      return this.#findNewest(source.chart, places && (await readAccess(hub.call, places)));
    };
    const { version, problem } = this.#versions.of(followedKey(proxy), find, { now, signal: hub.signal });
    if (problem !== '') this.#note(`${proxy.from}: ${problem}`);
    if (version === undefined) return problem;
    return { ...made, spec: { ...made.spec, source: { ...source, chart: { ...source.chart, version } } } };
  }

  async #takeProxy(proxy: HubProxy, { hub, clusters, now }: Around): Promise<void> {
    const { made, notes, from, title } = proxy;
    for (const text of notes) this.#note(`${from}: ${text}`);
    const find = (): readonly HubAddon[] => ownAddons(hub, from, [title]);
    if (proxy.isDeleting) await finalizeForeign(hub, this.#proxies, { one: proxy, addons: find(), leave: [PROVIDER] });
    const isInvalid = typeof made === 'string';
    const own = proxy.isDeleting || isInvalid ? proxy : await addFinalizer(hub, this.#proxies, proxy);
    const whole = isInvalid || !proxy.follows ? made : this.#atNewest(hub, proxy, made, now);
    const problem =
      typeof whole === 'string' ? whole : proxy.isDeleting ? undefined : await putAddon(hub, title, whole, find()[0]);
    const [addon] = find();
    if (proxy.isDeleting && addon === undefined) return;
    await writeStatus(hub, this.#proxies, own, proxyStatus(own, addon, { clusters, problem, now }));
  }
}

/** What its version is found by. */
function followedKey({ from, made }: HubProxy): string {
  return typeof made === 'string' ? from : `${from} ${canonicalJson(made.spec['source'])}`;
}

interface Around {
  readonly hub: Hub;
  readonly clusters: readonly HubCluster[];
  readonly now: number;
}

/** When nothing is on it any more, which its finalizer waits for. Finalizers of others keep it. */
async function dropCluster(hub: Hub, { at, cluster, origin, finalizers }: HubCluster): Promise<void> {
  const { call, clusters, clusterAddons, report } = hub;
  if (clusterAddons.values(namespaceOf(cluster.name)).some((one) => one?.record !== undefined)) return;
  const isBound = finalizers.includes(FINALIZER);
  if (cluster.deleting !== undefined && !isBound) return;
  if (isBound) clusters.put(await bind(call, CLUSTERS, { at, finalizers }, false));
  await deleteGenerated(hub, CLUSTERS, at);
  if (finalizers.every((name) => name === FINALIZER)) clusters.drop(at);
  report(`${cluster.name} leaves the hub: ${origin?.from ?? ''} is gone`);
}
