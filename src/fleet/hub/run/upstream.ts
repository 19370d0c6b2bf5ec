/** Objects of other programs in a hub that the controller takes. */
import { setMaxListeners } from 'node:events';
import { canonicalJson } from '../../../core/digest.ts';
import { requireRefusal } from '../../../core/errors.ts';
import type { HubCluster } from '../observe.ts';
import { FOREIGN_KINDS, type ForeignKind, type Reconciled } from '../../upstream/foreign-kinds.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { discover, groupOf, type Resource } from '../../../cluster/kube/resources.ts';
import { pause } from '../../../platform/limit/repeat.ts';
import type { FindNewest } from '../../run/newest.ts';
import { HelmProxies } from './helm-proxies.ts';
import type { UpstreamParts } from './generated-addons.ts';
import { OcmAddons } from './ocm.ts';
import type { Hub, Passed } from './hub-pass.ts';

/** A kind that a server does not have may come. */
const ASK_MS = 60_000;

interface UpstreamOptions {
  readonly signal: AbortSignal;
  readonly onChange: () => void;
  readonly findNewest: FindNewest;
  readonly say: (level: 'info' | 'warning', text: string) => void;
  /** Between looks at what the server has, while something is wrong; default: a minute. */
  readonly askMs?: number;
}

/** How a server has a kind in a version that can be read, or what is missing. */
function servedAs({ kind, group, versions }: ForeignKind, served: readonly Resource[]): Resource | string {
  const all = served.filter((one) => one.kind === kind && groupOf(one) === group);
  const inVersion = (version: string): readonly Resource[] =>
    all.filter(({ apiVersion }) => apiVersion === `${group}/${version}`);
  const [first] = versions?.flatMap(inVersion) ?? all;
  if (first !== undefined) return first;
  if (all.length === 0) return `the server has no ${kind} of ${group}: install its definition`;
  const has = all.map(({ apiVersion }) => apiVersion.slice(group.length + 1)).join(', ');
  return `the server has ${kind} of ${group} only as ${has}, not as ${versions?.join(' or ')}: use a curlew that knows it`;
}

/** What takes the objects of a name of `--reconcile`, in certain versions of their kinds. */
interface Taking {
  readonly taker: Taker;
  /** By kind. */
  readonly versions: ReadonlyMap<string, string>;
  readonly over: AbortController;
  isBegun?: boolean;
}

interface Taker {
  /** Why its objects may not be all, or be old. */
  readonly problem: string | undefined;
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly joined: (own: HubCluster) => HubCluster | undefined;
  readonly pass: (hub: Hub, now: number) => Promise<Passed>;
}

/** The order counts: the first one also makes clusters. */
const TAKERS = {
  helmchartproxies: (parts: UpstreamParts) => new HelmProxies(parts),
  clustermanagementaddons: (parts: UpstreamParts) => new OcmAddons(parts),
} as const satisfies Readonly<Record<Reconciled, (parts: UpstreamParts) => Taker>>;

export class Upstream {
  readonly #api: KubeApi;
  readonly #options: UpstreamOptions;
  readonly #names: readonly Reconciled[];
  readonly #reported = new Set<string>();
  readonly #takings = new Map<Reconciled, Taking>();
  /** What reads in other versions, and replaces the present one in a pass, once it has listed all. */
  readonly #next = new Map<Reconciled, Taking>();
  /** Why what is to be taken cannot be now. */
  readonly #lacks = new Map<Reconciled, string>();
  /** The last pass was refused something. */
  #isRefused = false;

  /** What the server does not have the kinds of is a {@link problem} until it does. */
  static async open(api: KubeApi, names: readonly Reconciled[], options: UpstreamOptions): Promise<Upstream> {
    const upstream = new Upstream(api, names, options);
    await upstream.#look(options.signal);
    return upstream;
  }

  private constructor(api: KubeApi, names: readonly Reconciled[], options: UpstreamOptions) {
    this.#api = api;
    this.#names = (Object.keys(TAKERS) as (keyof typeof TAKERS)[]).filter((name) => names.includes(name));
    this.#options = options;
  }

  /** Names of the definitions of all kinds that it reads. */
  get definitions(): readonly string[] {
    return [...this.#takings.keys()].flatMap((name) =>
      FOREIGN_KINDS[name].map(({ plural, group }) => `${plural}.${group}`),
    );
  }

  /**
   * Why its objects may not be all, or be old. So it is while kinds are missing: labels of clusters come from them, and without
   * these a hub that has had them would remove add-ons.
   */
  get problem(): string | undefined {
    const [lack] = this.#lacks.values();
    if (lack !== undefined) return lack;
    for (const [name, { taker }] of this.#takings) {
      const problem = taker.problem && (this.#next.get(name)?.taker ?? taker).problem;
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  /** Until the signal aborts, whose reason it throws. */
  async run(signal: AbortSignal): Promise<never> {
    let fail: (error: unknown) => void = () => undefined;
    const failure = new Promise<never>((_, reject) => (fail = reject));
    for (;;) {
      for (const one of [...this.#takings.values(), ...this.#next.values()]) begin(one, signal, fail);
      await Promise.race([pause(this.#options.askMs ?? ASK_MS, { signal }), failure]);
      const before = this.problem;
      if (before === undefined && !this.#isRefused) continue;
      // A version of a kind may have gone, or a kind may have come.
      await this.#look(signal).catch((error: unknown) => {
        requireRefusal(error, signal);
      });
      if (this.problem !== before) this.#options.onChange();
    }
  }

  /** Finds out in which versions the server has all kinds now, and what is missing. */
  async #look(signal: AbortSignal): Promise<void> {
    const { served } = await discover(this.#api, { patienceMs: 0, signal });
    for (const name of this.#names) {
      const kinds = new Map<string, Resource | string>(
        FOREIGN_KINDS[name].map((one) => [one.kind, servedAs(one, served)]),
      );
      const lacking = [...kinds.values()].find((one) => typeof one === 'string');
      if (lacking !== undefined) {
        this.#lacks.set(name, `cannot take ${name}: ${lacking}, or leave ${name} out of --reconcile`);
        continue;
      }
      this.#lacks.delete(name);
      const resources = new Map([...kinds].filter((one): one is [string, Resource] => typeof one[1] !== 'string'));
      const versions = new Map([...resources].map(([kind, { apiVersion }]) => [kind, apiVersion]));
      const present = this.#takings.get(name);
      const latest = this.#next.get(name) ?? present;
      if (latest !== undefined && canonicalJson([...latest.versions]) === canonicalJson([...versions])) continue;
      const taking = { taker: this.#takerOf(name, resources, served), versions, over: new AbortController() };
      if (present === undefined) this.#takings.set(name, taking);
      else {
        this.#next.get(name)?.over.abort();
        this.#next.set(name, taking);
        this.#options.say(
          'info',
          `${name} are read in other versions from now on: ${changed(present.versions, versions)}`,
        );
      }
    }
  }

  #takerOf(name: Reconciled, resources: ReadonlyMap<string, Resource>, served: readonly Resource[]): Taker {
    const note = (text: string): void => {
      if (!this.#reported.has(text)) this.#options.say('info', text);
      this.#reported.add(text);
    };
    const find = (kind: string): Resource => {
      const resource = resources.get(kind);
      if (resource === undefined) throw new TypeError(`${kind} is not in the list of kinds`);
      return resource;
    };
    const { onChange, findNewest } = this.#options;
    return TAKERS[name]({ api: this.#api, find, served, onChange, findNewest, note });
  }

  /** A Cluster with what is known of it elsewhere; undefined if it has gone there. */
  joined(own: HubCluster): HubCluster | undefined {
    let cluster: HubCluster | undefined = own;
    for (const taker of this.#takers()) cluster &&= taker.joined(cluster);
    return cluster;
  }

  /** Writes what the objects are to become, and how far that is; `now` in seconds since 1970. */
  async pass(hub: Hub, now: number): Promise<Passed> {
    // Nowhere else, so that one pass sees the objects of one taker from its beginning to its end.
    for (const [name, next] of this.#next) {
      if (next.taker.problem !== undefined) continue;
      this.#takings.get(name)?.over.abort();
      this.#takings.set(name, next);
      this.#next.delete(name);
    }
    let [problem, nextMs]: [string | undefined, number] = [undefined, Infinity];
    for (const taker of this.#takers()) {
      const passed = await taker.pass(hub, now);
      problem ??= passed.problem;
      nextMs = Math.min(nextMs, passed.nextMs);
    }
    this.#isRefused = problem !== undefined;
    return { problem, nextMs };
  }

  #takers(): readonly Taker[] {
    return this.#names.flatMap((name) => this.#takings.get(name)?.taker ?? []);
  }
}

/** Its watches, until the signal aborts or it is replaced; `fail` gets any other end. */
function begin(one: Taking, signal: AbortSignal, fail: (error: unknown) => void): void {
  if (one.isBegun === true) return;
  one.isBegun = true;
  const own = AbortSignal.any([signal, one.over.signal]);
  // Each watch listens.
  setMaxListeners(0, own);
  void one.taker.run(own).catch((error: unknown) => {
    if (!own.aborted) fail(error);
  });
}

function changed(before: Taking['versions'], after: Taking['versions']): string {
  const all = [...after].filter(([kind, version]) => before.get(kind) !== version);
  return all.map(([kind, version]) => `${kind} in ${version} instead of ${before.get(kind) ?? ''}`).join(', ');
}
