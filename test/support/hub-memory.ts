/** A hub as objects in memory, whose passes a test runs one by one: no server and no connection. */
import { setMaxListeners } from 'node:events';
import { Heartbeats } from '../../src/fleet/hub/run/heartbeats.ts';
import { HelmProxies } from '../../src/fleet/hub/run/helm-proxies.ts';
import { StoredStatuses } from '../../src/fleet/hub/run/stored-statuses.ts';
import { ValuesObjects } from '../../src/fleet/hub/run/values-objects.ts';
import type { UpstreamParts } from '../../src/fleet/hub/run/generated-addons.ts';
import { OcmAddons } from '../../src/fleet/hub/run/ocm.ts';
import { resourceOf, type Hub } from '../../src/fleet/hub/run/hub-pass.ts';
import { readHubChannel } from '../../src/fleet/hub/channel.ts';
import { readFleetAddon, readHubCluster, readClusterAddon } from '../../src/fleet/hub/observe.ts';
import { FOREIGN_KINDS, type ForeignKind, type Reconciled } from '../../src/fleet/upstream/foreign-kinds.ts';
import type { ApiAnswer, ApiRequest, KubeApi } from '../../src/cluster/kube/api.ts';
import { openCalls } from '../../src/cluster/kube/call.ts';
import { LEASES } from '../../src/cluster/kube/lease.ts';
import { collectionPath, type Resource } from '../../src/cluster/kube/resources.ts';
import { Watch } from '../../src/cluster/kube/watch.ts';
import { Backoff } from '../../src/platform/limit/backoff.ts';
import { Memo } from '../../src/fleet/rollout/content.ts';
import { until } from './appears.ts';
import type { JsonObject } from './api-server/fields.ts';

interface Operation {
  readonly op: 'test' | 'add' | 'replace';
  readonly path: string;
  readonly value: unknown;
}

export interface MemoryHub extends AsyncDisposable {
  readonly hub: Hub;
  /** All objects as they are now, for another hub. */
  readonly objects: () => readonly object[];
  /** Requests so far, without watches. */
  readonly requests: readonly string[];
  /** Requests that wrote something. */
  readonly writes: readonly string[];
  readonly notes: readonly string[];
}

/** `keeps`: what the server keeps of a written object, which a definition may prune. */
export async function openMemoryHub(
  objects: readonly object[],
  keeps: (object: JsonObject) => JsonObject = (object) => object,
  findNewest: UpstreamParts['findNewest'] = noRepository,
): Promise<MemoryHub> {
  const stored = new Map<string, JsonObject>();
  const [requests, writes, notes]: [string[], string[], string[]] = [[], [], []];
  let version = 0;
  const keep = (path: string, object: JsonObject): JsonObject => {
    version += 1;
    const metadata = { uid: `u${version}`, ...(object['metadata'] as object), resourceVersion: String(version) };
    const kept = { ...keeps(object), metadata } as JsonObject;
    stored.set(path, kept);
    return kept;
  };
  for (const object of objects) keep(pathOf(object as Written), object as JsonObject);
  const answer = (value: unknown): ApiAnswer => ({ kind: 'answer', value, bytes: 0 });
  const gone: ApiAnswer = { kind: 'problem', problem: 'not found', message: 'not found' } as never;
  const ask = ({ verb, path: full, document = '{}' }: ApiRequest): ApiAnswer => {
    const path = (full.split('?')[0] ?? '').replace(/\/status$/, '');
    requests.push(`${verb} ${path}`);
    if (verb === 'get') {
      const found = stored.get(path);
      if (path.includes('/customresourcedefinitions/')) return answer({ metadata: {} });
      if (found !== undefined) return answer(found);
      const plural = path.split('/').at(-1) ?? '';
      const [root] = path.split(`/${plural}`);
      const items = [...stored].filter(([key]) => key.startsWith(`${root}/`) && key.split('/').at(-2) === plural);
      return answer({ metadata: { resourceVersion: String(version) }, items: items.map(([, value]) => value) });
    }
    writes.push(`${verb} ${path}`);
    if (verb === 'create') {
      const object = JSON.parse(document) as JsonObject;
      const { name } = object['metadata'] as { readonly name: string };
      return answer(keep(`${path}/${name}`, object));
    }
    const found = stored.get(path);
    if (found === undefined || verb !== 'patch') return gone;
    const next = structuredClone(found) as Record<string, unknown>;
    for (const { op, path: at, value } of JSON.parse(document) as readonly Operation[]) {
      const parts = at.slice(1).split('/');
      const last = (parts.pop() ?? '').replaceAll('~1', '/');
      const parent = parts.reduce((map, part) => (map[part] ??= {}) as Record<string, unknown>, next);
      if (op !== 'test') parent[last] = value;
    }
    return answer(keep(path, next as JsonObject));
  };
  const stop = new AbortController();
  const { signal } = stop;
  setMaxListeners(0, signal);
  const api: KubeApi = {
    ask: async (request) => Promise.resolve(ask(request)),
    follow: async () =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
    target: async () => Promise.resolve({ server: '', namespace: '' }),
    embedded: async () => Promise.reject(new Error('no kubeconfig')),
    now: () => new Date(),
  };
  const onChange = (): void => undefined;
  const partsFor = (name: Reconciled): UpstreamParts => {
    const find = (kind: string): Resource => {
      const found = FOREIGN_KINDS[name].find((one) => one.kind === kind);
      if (found === undefined) throw new TypeError(kind);
      return {
        apiVersion: `${found.group}/${versionOf(kind)}`,
        kind,
        plural: found.plural,
        namespaced: !WIDE.has(kind),
      };
    };
    return { api, find, served: [], onChange, findNewest, note: (text) => void notes.push(text) };
  };
  const proxies = new HelmProxies(partsFor('helmchartproxies'));
  const ocm = new OcmAddons(partsFor('clustermanagementaddons'));
  const heartbeats = new Heartbeats(onChange);
  const call = openCalls(api, { patienceMs: 0, signal });
  const hub: Hub = {
    uid: 'hub',
    signal,
    upstream: {
      definitions: [],
      problem: undefined,
      joined: (own) => {
        const found = proxies.joined(own);
        return found && ocm.joined(found);
      },
      pass: async (all, now) => {
        await proxies.pass(all, now);
        return ocm.pass(all, now);
      },
    },
    call,
    clusters: new Watch(api, { resource: resourceOf('Cluster'), look: readHubCluster, onChange }),
    addons: new Watch(api, { resource: resourceOf('FleetAddon'), look: readFleetAddon, onChange }),
    clusterAddons: new Watch(api, { resource: resourceOf('ClusterAddon'), look: readClusterAddon, onChange }),
    channels: new Watch(api, { resource: resourceOf('Channel'), look: readHubChannel, onChange }),
    leases: new Watch(api, { resource: LEASES, look: (lease) => heartbeats.see(lease), onChange }),
    heartbeats,
    backoff: new Backoff(),
    memo: new Memo(),
    statuses: new StoredStatuses((text) => void notes.push(text)),
    valuesObjects: new ValuesObjects(call),
    report: (text) => void notes.push(text),
  };
  const { clusters, addons, clusterAddons, channels, leases } = hub;
  const all = [clusters, addons, clusterAddons, channels, leases, proxies, ocm];
  const running = all.map(async (one) => one.run(signal).catch(() => undefined));
  await until(() => all.every(({ problem }) => problem === undefined));
  return {
    hub,
    objects: () => [...stored.values()],
    requests,
    writes,
    notes,
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('the test is over'));
      await Promise.all(running);
    },
  };
}

/** Where no chart is without a version. */
export async function noRepository(): Promise<never> {
  return Promise.reject(new TypeError('no chart is looked for'));
}

const WIDE: ReadonlySet<string> = new Set([
  'ClusterManagementAddOn',
  'AddOnTemplate',
  'ManagedCluster',
  'ManagedClusterSet',
  'FleetAddon',
  'Channel',
]);

interface Written {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** The version in which objects of other programs are read. */
function versionOf(kind: string): string {
  const all: readonly ForeignKind[] = Object.values(FOREIGN_KINDS).flat();
  return all.find((one) => one.kind === kind)?.versions?.[0] ?? 'v1';
}

/** Objects of other programs have the version that `find` says. */
function pathOf({ apiVersion, kind, metadata: { name, namespace } }: Written): string {
  const [group = ''] = apiVersion.split('/');
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  const resource: Resource = {
    apiVersion: group === 'fleet.curlew.dev' ? apiVersion : `${group}/${versionOf(kind)}`,
    kind,
    plural: plural.toLowerCase(),
    namespaced: !WIDE.has(kind),
  };
  return `${collectionPath(resource, namespace)}/${name}`;
}
