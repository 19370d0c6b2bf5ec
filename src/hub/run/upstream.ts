/** Objects of other programs in a hub that the controller takes. */
import { CurlewError } from '../../core/errors.ts';
import type { HubCluster } from '../observe.ts';
import { UPSTREAM, type Upstreams } from '../taken.ts';
import type { KubeApi } from '../../kube/api.ts';
import { discover, groupOf, type Resource } from '../../kube/resources.ts';
import { HelmProxies } from './helm-proxies.ts';
import { OcmAddons } from './ocm.ts';
import type { Hub, Passed } from './pass.ts';

interface UpstreamOptions {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly report: (text: string) => void;
}

export class Upstream {
  /** Names of the definitions of all kinds that it reads. */
  readonly definitions: readonly string[];
  readonly #proxies: HelmProxies | undefined;
  readonly #addons: OcmAddons | undefined;

  /** `CLUSTER_FAILED` if the server does not have a kind. */
  static async open(api: KubeApi, names: readonly Upstreams[], options: UpstreamOptions): Promise<Upstream> {
    const { served } = await discover(api, { patienceMs: 0, signal: options.signal });
    return new Upstream(api, names, served, options);
  }

  private constructor(
    api: KubeApi,
    names: readonly Upstreams[],
    served: readonly Resource[],
    { onChange, report }: UpstreamOptions,
  ) {
    const kinds = names.flatMap((name) => [...UPSTREAM[name]]);
    this.definitions = kinds.map(({ plural, group }) => `${plural}.${group}`);
    const find = (kind: string, group: string): Resource => {
      const found = served.find((one) => one.kind === kind && groupOf(one) === group);
      if (found !== undefined) return found;
      const hint = 'install its definition, or leave it out of --reconcile';
      throw new CurlewError('CLUSTER_FAILED', `cannot take ${names.join()}: the server has no ${kind} of ${group}`, {
        hint,
      });
    };
    const said = new Set<string>();
    const note = (text: string): void => {
      if (!said.has(text)) report(text);
      said.add(text);
    };
    const parts = { api, find, served, onChange, note };
    if (names.includes('helmchartproxies')) this.#proxies = new HelmProxies(parts);
    if (names.includes('clustermanagementaddons')) this.#addons = new OcmAddons(parts);
  }

  /** Why its objects may not be all, or be old. */
  get problem(): string | undefined {
    return this.#proxies?.problem ?? this.#addons?.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#proxies?.run(signal), this.#addons?.run(signal)]);
  }

  /** A Cluster with what is known of it elsewhere; undefined if it has gone there. */
  joined(own: HubCluster): HubCluster | undefined {
    const found = this.#proxies === undefined ? own : this.#proxies.joined(own);
    return found && this.#addons !== undefined ? this.#addons.joined(found) : found;
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
