/**
 * ConfigMaps and Secrets with several writers: no change is lost, and requests are repeated while the API server is unreachable.
 */
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { fieldsOf, isObject, mapped } from '../../core/json.ts';
import type { ApiRequest, KubeApi } from './api.ts';
import { openCalls, type Call, type CallOptions } from './call.ts';
import { CONFIG_MAPS, SECRETS } from './core-kinds.ts';
import { apiPath } from './path.ts';
import { collectionPath, objectPath, type Resource } from './resources.ts';

export type Data = Readonly<Record<string, string>>;

export interface ConfigMapName {
  readonly namespace: string;
  readonly name: string;
  /** A Secret is handled like a ConfigMap; its values are plain text here, and base64 only in requests. */
  readonly kind?: 'ConfigMap' | 'Secret';
}

interface ConfigMap {
  readonly data: Data;
  /** It has curlew's label: curlew wrote it last, or a writer that keeps labels did. */
  readonly ours: boolean;
  /** The whole object, so that a change keeps unknown fields. */
  readonly object: Readonly<Record<string, unknown>>;
}

export interface ConfigMapClient {
  /** Undefined if it does not exist. */
  readonly read: (name: ConfigMapName) => Promise<Pick<ConfigMap, 'data' | 'ours'> | undefined>;
  /**
   * Creates or replaces it. `change` maps the present data to the new data; it is called again if another writer was faster.
   * Writes nothing if nothing changes.
   */
  readonly change: (name: ConfigMapName, change: (data: Data | undefined) => Data) => Promise<Data>;
}

/** Maximum total bytes of the values of a ConfigMap (Kubernetes: MaxSecretSize, validation of ConfigMaps). */
export const CONFIG_MAP_LIMIT: number = 1 << 20;

const MAX_CONFLICTS = 20;
/** Marks ConfigMaps that curlew wrote. kURL creates its ConfigMaps again each time, without the label. */
const LABEL = { 'app.kubernetes.io/managed-by': 'curlew' } as const;

/** Annotation of kubectl apply: an outdated copy of all values, including secret ones. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export function configMapClient(api: KubeApi, options: CallOptions): ConfigMapClient {
  const call = openCalls(api, options);
  const known = new Map<string, ConfigMap>();
  const read = async (name: ConfigMapName): Promise<ConfigMap | undefined> => {
    const doing = `read ${configMapTitle(name)}`;
    const reply = await call(doing, { verb: 'get', path: objectPath(resourceOf(name), name) });
    const map = reply.outcome === 'done' ? configMapOf(name, reply.value, doing) : undefined;
    remember(known, name, map);
    return map;
  };
  return {
    read,
    change: async (name, change) => {
      const doing = `write ${configMapTitle(name)}`;
      for (let times = 0; times < MAX_CONFLICTS; times += 1) {
        const before = (times === 0 ? known.get(keyOf(name)) : undefined) ?? (await read(name));
        const data = change(before?.data);
        if (before?.ours === true && isSame(before.data, data)) return data;
        requireFit(doing, data);
        const written = await call(doing, writeRequest(name, before, data));
        if (written.outcome === 'done') {
          remember(known, name, configMapOf(name, written.value, doing));
          return data;
        }
        // Another writer removed, created or changed it meanwhile, or its namespace does not exist yet.
        if (before === undefined && written.outcome === 'not found') await makeNamespace(call, name.namespace);
      }
      throw new CurlewError('CLUSTER_FAILED', `cannot ${doing}: other writers changed it each time`, {
        hint: 'find the other writer, then run the same command again',
      });
    },
  };
}

function kindOf({ kind = 'ConfigMap' }: ConfigMapName): 'ConfigMap' | 'Secret' {
  return kind;
}

/** For messages: `Secret kurl/name`. */
export function configMapTitle(name: ConfigMapName): string {
  return `${kindOf(name)} ${name.namespace}/${name.name}`;
}

function keyOf(name: ConfigMapName): string {
  return configMapTitle(name);
}

function remember(known: Map<string, ConfigMap>, name: ConfigMapName, map: ConfigMap | undefined): void {
  if (map === undefined) known.delete(keyOf(name));
  else known.set(keyOf(name), map);
}

function resourceOf(name: ConfigMapName): Resource {
  return kindOf(name) === 'Secret' ? SECRETS : CONFIG_MAPS;
}

function isSame(a: Data, b: Data): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

function requireFit(doing: string, data: Data): void {
  const bytes = configMapBytes(data);
  if (bytes <= CONFIG_MAP_LIMIT) return;
  throw new CurlewError(
    'CLUSTER_FAILED',
    `cannot ${doing}: it would have ${bytes} bytes; the limit is ${CONFIG_MAP_LIMIT}`,
  );
}

/** Bytes that count toward the limit. */
export function configMapBytes(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0);
}

function writeRequest(target: ConfigMapName, before: ConfigMap | undefined, data: Data): ApiRequest {
  const { namespace, name } = target;
  const kind = kindOf(target);
  const { metadata = {}, ...rest } = before?.object ?? { apiVersion: 'v1', kind };
  const { labels, annotations, ...others } = fieldsOf(metadata);
  const { [LAST_APPLIED]: _stale, ...notes } = fieldsOf(annotations);
  const labeled = {
    ...others,
    annotations: notes,
    name,
    namespace,
    labels: { ...fieldsOf(labels), ...LABEL },
  };
  const values = kind === 'Secret' ? mapped(data, (text) => Buffer.from(text).toString('base64')) : data;
  const document = JSON.stringify({ ...rest, metadata: labeled, data: values });
  if (before === undefined) return { verb: 'create', path: collectionPath(resourceOf(target), namespace), document };
  return { verb: 'replace', path: objectPath(resourceOf(target), target), document };
}

async function makeNamespace(call: Call, name: string): Promise<void> {
  const document = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await call(`create namespace ${name}`, { verb: 'create', path: apiPath`/api/v1/namespaces`, document });
}

function configMapOf(name: ConfigMapName, value: unknown, doing: string): ConfigMap {
  const bad = errorAbout('CLUSTER_FAILED', `cannot ${doing}`);
  if (!isObject(value) || !isObject(value['metadata'])) throw bad(`the response is not a ${kindOf(name)}`);
  const { data = {} } = value;
  if (!isObject(data) || !Object.values(data).every((text) => typeof text === 'string'))
    throw bad('its data is not a map of strings');
  const { managedFields: _fields, ...metadata } = value['metadata'];
  const { labels } = metadata;
  const ours = isObject(labels) && Object.entries(LABEL).every(([key, text]) => labels[key] === text);
  const texts = data as Data;
  const read = kindOf(name) === 'Secret' ? mapped(texts, (text) => Buffer.from(text, 'base64').toString()) : texts;
  return { data: read, ours, object: { ...value, metadata } };
}
