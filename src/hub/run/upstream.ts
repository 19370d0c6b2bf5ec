/** Objects of other programs in a hub that the controller takes. */
import { CurlewError } from '../../core/errors.ts';
import type { HubCluster } from '../observe.ts';
import { UPSTREAM, type UpstreamKind, type Upstreams } from '../taken.ts';
import type { KubeApi } from '../../kube/api.ts';
import { discover, groupOf, type Resource } from '../../kube/resources.ts';
import { pause } from '../../platform/limit/repeat.ts';
import { HelmProxies } from './helm-proxies.ts';
import { OcmAddons } from './ocm.ts';
import type { Hub, Passed } from './pass.ts';

/** A kind that a server does not have may come. */
const ASK_MS = 60_000;

interface UpstreamOptions {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly say: (level: 'info' | 'warning', text: string) => void;
  /** Between looks for kinds that the server did not have; default: a minute. */
  readonly askMs?: number;
}

/** How a server has a kind in a version that can be read, or what is missing. */
function servedAs({ kind, group, versions }: UpstreamKind, served: readonly Resource[]): Resource | string {
  const all = served.filter((one) => one.kind === kind && groupOf(one) === group);
  const inVersion = (version: string): readonly Resource[] =>
    all.filter(({ apiVersion }) => apiVersion === `${group}/${version}`);
  const [first] = versions?.flatMap(inVersion) ?? all;
  if (first !== undefined) return first;
  if (all.length === 0) return `the server has no ${kind} of ${group}: install its definition`;
  const has = all.map(({ apiVersion }) => apiVersion.slice(group.length + 1)).join(', ');
  return `the server has ${kind} of ${group} only as ${has}, not as ${versions?.join(' or ')}: use a curlew that knows it`;
}

export class Upstream {
  readonly #api: KubeApi;
  readonly #options: UpstreamOptions;
  readonly #said = new Set<string>();
  /** What is to be taken, and cannot be yet. */
  #missing: readonly Upstreams[];
  /** Why not. */
  #lack: string | undefined;
  #proxies: HelmProxies | undefined;
  #addons: OcmAddons | undefined;

  /** What the server does not have the kinds of is a {@link problem} until it does. */
  static async open(api: KubeApi, names: readonly Upstreams[], options: UpstreamOptions): Promise<Upstream> {
    const upstream = new Upstream(api, names, options);
    await upstream.#take(options.signal);
    return upstream;
  }

  private constructor(api: KubeApi, names: readonly Upstreams[], options: UpstreamOptions) {
    this.#api = api;
    this.#missing = [...new Set(names)];
    this.#options = options;
  }

  /** Names of the definitions of all kinds that it reads. */
  get definitions(): readonly string[] {
    const taken = [
      ...(this.#proxies === undefined ? [] : UPSTREAM.helmchartproxies),
      ...(this.#addons === undefined ? [] : UPSTREAM.clustermanagementaddons),
    ];
    return taken.map(({ plural, group }) => `${plural}.${group}`);
  }

  /**
   * Why its objects may not be all, or be old. So it is while kinds are missing: labels of clusters come from them, and without
   * these a hub that has had them would remove add-ons.
   */
  get problem(): string | undefined {
    return this.#lack ?? this.#proxies?.problem ?? this.#addons?.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#proxies?.run(signal), this.#addons?.run(signal), this.#takeLater(signal)]);
  }

  async #takeLater(signal: AbortSignal): Promise<void> {
    let taken: readonly (HelmProxies | OcmAddons)[] = [];
    while (taken.length === 0) {
      if (this.#missing.length === 0) return;
      await pause(this.#options.askMs ?? ASK_MS, { signal });
      taken = await this.#take(signal).catch((error: unknown) => {
        signal.throwIfAborted();
        if (!(error instanceof CurlewError)) throw error;
        return [];
      });
    }
    this.#options.onChange();
    await Promise.all([...taken.map(async (one) => one.run(signal)), this.#takeLater(signal)]);
  }

  /** Takes what the server has all kinds of by now, and returns it. */
  async #take(signal: AbortSignal): Promise<readonly (HelmProxies | OcmAddons)[]> {
    const { served } = await discover(this.#api, { patienceMs: 0, signal });
    const note = (text: string): void => {
      if (!this.#said.has(text)) this.#options.say('info', text);
      this.#said.add(text);
    };
    const { onChange } = this.#options;
    const taken: (HelmProxies | OcmAddons)[] = [];
    const missing: Upstreams[] = [];
    const lacks: string[] = [];
    for (const name of this.#missing) {
      const kinds = new Map<string, Resource | string>(UPSTREAM[name].map((one) => [one.kind, servedAs(one, served)]));
      const lacking = [...kinds.values()].find((one) => typeof one === 'string');
      const find = (kind: string): Resource => {
        const resource = kinds.get(kind);
        if (resource === undefined || typeof resource === 'string')
          throw new TypeError(`${kind} is not in the list of kinds`);
        return resource;
      };
      const parts = { api: this.#api, find, served, onChange, note };
      if (lacking !== undefined) {
        lacks.push(`cannot take ${name}: ${lacking}, or leave ${name} out of --reconcile`);
        missing.push(name);
      } else if (name === 'helmchartproxies') taken.push((this.#proxies = new HelmProxies(parts)));
      else taken.push((this.#addons = new OcmAddons(parts)));
    }
    this.#missing = missing;
    this.#lack = lacks[0];
    return taken;
  }

  /** A Cluster with what is known of it elsewhere; undefined if it has gone there. */
  joined(own: HubCluster): HubCluster | undefined {
    const cluster = this.#proxies === undefined ? own : this.#proxies.joined(own);
    return cluster && this.#addons !== undefined ? this.#addons.joined(cluster) : cluster;
  }

  /** Writes what the objects are to become, and how far that is; `now` in seconds since 1970. */
  async pass(hub: Hub, now: number): Promise<Passed> {
    const first = await this.#proxies?.pass(hub, now);
    const clusters = hub.clusters.values().flatMap((one) => one ?? []);
    const second = await this.#addons?.pass(hub, clusters, now);
    const nextMs = Math.min(first?.nextMs ?? Infinity, second?.nextMs ?? Infinity);
    return { problem: first?.problem ?? second?.problem, nextMs };
  }
}
