/** An API server asked directly: what it holds, and the removal of what came after a moment. */
import { once, setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get as httpsGet } from 'node:https';
import { isObject } from '../../src/core/json.ts';
import { openConnections } from '../../src/platform/http/connections.ts';
import { collector } from '../../src/platform/http/message.ts';
import { send as exchange } from '../../src/platform/http/wire.ts';

export interface Meta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly uid: string }[];
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Meta;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

interface Resource {
  /** `apps/v1` */
  readonly version: string;
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export interface Kube extends AsyncDisposable {
  readonly get: (path: string) => Promise<unknown>;
  /** Sends JSON; hands back the status. */
  readonly send: (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown) => Promise<number>;
  readonly list: (path: string) => Promise<readonly KubeObject[]>;
  /** Calls `changed` for what is there and for each later change below this path, until the signal or the server ends it. */
  readonly watch: (path: string, changed: () => void, signal: AbortSignal) => Promise<void>;
  /** Everything there is but what passes or follows from other objects: events and leases, by `Kind.group namespace/name`. */
  readonly all: () => Promise<ReadonlyMap<string, KubeObject>>;
  /** Removes all that is not in an earlier {@link all}. */
  readonly clear: (before: ReadonlyMap<string, KubeObject>) => Promise<void>;
}

const PASSING: ReadonlySet<string> = new Set(['Event', 'Lease', 'ComponentStatus', 'EndpointSlice', 'IPAddress']);
/** Removed first, because they stand in the way of other removals; and last, because others are in them. */
const FIRST: ReadonlySet<string> = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'APIService',
]);
const LAST: ReadonlySet<string> = new Set(['CustomResourceDefinition', 'Namespace']);

function folderOf(version: string): string {
  return version.includes('/') ? `/apis/${version}` : `/api/${version}`;
}

export function pathOf({ apiVersion, metadata: { name, namespace } }: KubeObject, resource: string): string {
  const within = namespace === undefined ? '' : `/namespaces/${namespace}`;
  return `${folderOf(apiVersion)}${within}/${resource}/${name}`;
}

export async function openKube(kubeconfig: string): Promise<Kube> {
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as {
    readonly clusters: readonly [
      { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } },
    ];
    readonly users: readonly [{ readonly user: { readonly token: string } }];
  };
  const [{ cluster }] = config.clusters;
  const [{ user }] = config.users;
  const roots = [Buffer.from(cluster['certificate-authority-data'], 'base64').toString()];
  const connections = openConnections({ proxyOf: () => undefined, connectMs: 10_000, roots });
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const call = async (method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const headers = { authorization: `Bearer ${user.token}`, 'content-type': type };
    const hop = {
      method,
      url: new URL(`${cluster.server}${path}`),
      headers,
      body: body === undefined ? body : JSON.stringify(body),
    };
    const limit = 256 << 20;
    const tooLong = (): Error => new Error(`${method} ${path}: more than ${limit} bytes`);
    const { sink, body: received } = collector({ limit, failureLimit: limit, tooLong });
    const { status } = await exchange(connections, hop, sink, { signal });
    return { status, text: received().toString() };
  };
  const get = async (path: string): Promise<unknown> => {
    const { status, text } = await call('GET', path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${text.slice(0, 200)}`);
    return text === 'ok' ? text : JSON.parse(text);
  };
  const send: Kube['send'] = async (method, path, body) => (await call(method, path, body)).status;
  const list = async (path: string): Promise<readonly KubeObject[]> => {
    const value = await get(path);
    return isObject(value) && Array.isArray(value['items']) ? (value['items'] as KubeObject[]) : [];
  };
  const watch: Kube['watch'] = async (path, changed, signal) => {
    const headers = { authorization: `Bearer ${user.token}` };
    const request = httpsGet(`${cluster.server}${path}?watch=true`, { ca: roots, headers, signal });
    const [answer] = (await once(request, 'response', { signal })) as [IncomingMessage];
    if (answer.statusCode !== 200) throw new Error(`watch ${path}: ${answer.statusCode}`);
    for await (const _ of answer) changed();
  };
  const resources = async (): Promise<readonly Resource[]> => {
    const groups = (await get('/apis')) as {
      readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
    };
    const versions = ['v1', ...groups.groups.map(({ preferredVersion }) => preferredVersion.groupVersion)];
    const found = await Promise.all(
      versions.map(async (version) => {
        // An API service whose pods do not run has nothing.
        const { status, text } = await call('GET', folderOf(version));
        if (status !== 200) return [];
        const { resources: rows } = JSON.parse(text) as {
          readonly resources: readonly (Omit<Resource, 'version'> & { readonly verbs: readonly string[] })[];
        };
        return rows
          .filter(({ name, verbs, kind }) => !name.includes('/') && verbs.includes('list') && !PASSING.has(kind))
          .map((row) => ({ ...row, version }));
      }),
    );
    return found.flat();
  };
  const all = async (): Promise<ReadonlyMap<string, KubeObject>> => {
    const lists = await Promise.all(
      (await resources()).map(async ({ version, name, kind }) => {
        const items = await list(`${folderOf(version)}/${name}`);
        return items.map((item) => ({ ...item, apiVersion: version, kind, resource: name }));
      }),
    );
    return new Map(lists.flat().map((item) => [nameOf(item), item]));
  };
  const remove = async (item: KubeObject): Promise<void> => {
    const path = pathOf(item, String(item['resource']));
    if ((item.metadata.finalizers ?? []).length > 0) await send('PATCH', path, { metadata: { finalizers: null } });
    // By default a Job would wait for the controller that lets go of its pods, which does not run.
    const how = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };
    await send('DELETE', path, { kind: 'DeleteOptions', apiVersion: 'v1', ...how });
    if (item.kind === 'Namespace') await send('PUT', `${path}/finalize`, { ...item, spec: { finalizers: [] } });
  };
  const clear = async (before: ReadonlyMap<string, KubeObject>): Promise<void> => {
    const late = [...(await all())].filter(([name]) => !before.has(name)).map(([, item]) => item);
    await Promise.all(late.filter(({ kind }) => FIRST.has(kind)).map(remove));
    await Promise.all(late.filter(({ kind }) => !FIRST.has(kind) && !LAST.has(kind)).map(remove));
    await Promise.all(late.filter(({ kind }) => LAST.has(kind)).map(remove));
  };
  return { get, send, list, watch, all, clear, [Symbol.asyncDispose]: async () => connections[Symbol.dispose]() };
}

/** `Deployment.apps kube-system/coredns`, `ClusterRole.rbac.authorization.k8s.io admin`. */
function nameOf({ apiVersion, kind, metadata: { name, namespace } }: KubeObject): string {
  const [group, version] = apiVersion.split('/');
  const inGroup = version === undefined ? kind : `${kind}.${group}`;
  return namespace === undefined ? `${inGroup} ${name}` : `${inGroup} ${namespace}/${name}`;
}
