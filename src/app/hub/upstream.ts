/** Objects of other programs in a hub that the controller takes. */
import { CurlewError } from '../../core/errors.ts';
import type { HubCluster } from '../../hub/observe.ts';
import { UPSTREAM, type Upstreams } from '../../hub/taken.ts';
import type { KubeApi } from '../../kube/api.ts';
import { discover, groupOf, type Resource } from '../../kube/resources.ts';
import { HelmProxies } from './helm-proxies.ts';
import type { Hub, Passed } from './pass.ts';

interface UpstreamOptions {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
}

export class Upstream {
  /** Names of the definitions of all kinds that it reads. */
  readonly definitions: readonly string[];
  readonly #proxies: HelmProxies | undefined;

  /** `CLUSTER_FAILED` if the server does not have a kind. */
  static async open(api: KubeApi, names: readonly Upstreams[], options: UpstreamOptions): Promise<Upstream> {
    const { served } = await discover(api, { patienceMs: 0, signal: options.signal });
    return new Upstream(api, names, served, options);
  }

  private constructor(
    api: KubeApi,
    names: readonly Upstreams[],
    served: readonly Resource[],
    { onChange }: UpstreamOptions,
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
    const parts = { api, onChange, served };
    if (names.includes('helmchartproxies')) this.#proxies = new HelmProxies(find, parts);
  }

  /** Why its objects may not be all, or be old. */
  get problem(): string | undefined {
    return this.#proxies?.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#proxies?.run(signal);
  }

  /** A Cluster with what is known of it elsewhere; undefined if it has gone there. */
  joined(own: HubCluster): HubCluster | undefined {
    return this.#proxies === undefined ? own : this.#proxies.joined(own);
  }

  /** Writes what the objects are to become, and how far that is; `now` in seconds since 1970. */
  async pass(hub: Hub, now: number): Promise<Passed> {
    return (await this.#proxies?.pass(hub, now)) ?? { problem: undefined, nextMs: Infinity };
  }
}
