/** ConfigMaps, and Secrets, that several writers change: nobody's change is lost, and an API server that is away for a moment is waited for. */
import { setTimeout as pause } from 'node:timers/promises';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { ApiRequest, KubeApi } from '../../kube/api.ts';
import { apiPath, type ApiPath } from '../../kube/path.ts';

export type Data = Readonly<Record<string, string>>;

export interface ConfigMapName {
  readonly namespace: string;
  readonly name: string;
  /** A Secret is handled like a ConfigMap; its values are texts here, and base64 only on the way. */
  readonly kind?: 'ConfigMap' | 'Secret';
}

interface ConfigMap {
  readonly data: Data;
  /** This tool has written it last, or somebody who keeps labels. */
  readonly ours: boolean;
  /** The whole object, so that a change keeps what it does not know. */
  readonly object: Readonly<Record<string, unknown>>;
}

export interface ConfigMapClient {
  /** Undefined when there is none. */
  readonly read: (name: ConfigMapName) => Promise<Pick<ConfigMap, 'data' | 'ours'> | undefined>;
  /**
   * Makes or replaces. `change` gets what is there and gives what should be; it is called again when another writer was
   * faster. Nothing is written when nothing changes.
   */
  readonly change: (name: ConfigMapName, change: (data: Data | undefined) => Data) => Promise<Data>;
}

/** Most bytes of the values of a ConfigMap (Kubernetes: MaxSecretSize, validation of ConfigMaps). */
export const CONFIG_MAP_LIMIT: number = 1 << 20;

const MOST_CONFLICTS = 20;
/** Tells what this tool has written from what kURL has, which makes its ConfigMaps anew each time. */
const LABEL = { 'app.kubernetes.io/managed-by': 'curlew' } as const;

/** What kubectl apply leaves behind: a copy of all values, secret ones included, which is not true any more. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export interface ClientOptions {
  /** How long an API server may be away before that is an error. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

export function configMapClient(api: KubeApi, { patienceMs, signal }: ClientOptions): ConfigMapClient {
  const call = async (doing: string, request: ApiRequest): Promise<Called> =>
    callPatiently(api, doing, request, { patienceMs, signal });
  const known = new Map<string, ConfigMap>();
  const read = async (name: ConfigMapName): Promise<ConfigMap | undefined> => {
    const doing = `read ${titleOf(name)}`;
    const found = await call(doing, { verb: 'get', path: pathOf(name) });
    const map = found.outcome === 'done' ? configMapOf(name, found.value, doing) : undefined;
    remember(known, name, map);
    return map;
  };
  return {
    read,
    change: async (name, change) => {
      const doing = `write ${titleOf(name)}`;
      for (let times = 0; times < MOST_CONFLICTS; times += 1) {
        const before = (times === 0 ? known.get(keyOf(name)) : undefined) ?? (await read(name));
        const data = change(before?.data);
        if (before?.ours === true && isSame(before.data, data)) return data;
        requireFit(doing, data);
        const written = await call(doing, writeRequest(name, before, data));
        if (written.outcome === 'done') {
          remember(known, name, configMapOf(name, written.value, doing));
          return data;
        }
        // Gone, made or changed by somebody else meanwhile, or there is no namespace for it yet.
        if (before === undefined && written.outcome === 'not found') await makeNamespace(call, name.namespace);
      }
      throw new CurlewError('CLUSTER_FAILED', `${doing}: others changed it again and again`, {
        hint: 'see who else writes it, then run the same command again',
      });
    },
  };
}

function kindOf({ kind = 'ConfigMap' }: ConfigMapName): 'ConfigMap' | 'Secret' {
  return kind;
}

/** For messages: `Secret kurl/name`. */
export function titleOf(name: ConfigMapName): string {
  return `${kindOf(name)} ${name.namespace}/${name.name}`;
}

function keyOf(name: ConfigMapName): string {
  return titleOf(name);
}

function remember(known: Map<string, ConfigMap>, name: ConfigMapName, map: ConfigMap | undefined): void {
  if (map === undefined) known.delete(keyOf(name));
  else known.set(keyOf(name), map);
}

function folderOf(name: ConfigMapName): ApiPath {
  return apiPath`/api/v1/namespaces/${name.namespace}/${kindOf(name) === 'Secret' ? 'secrets' : 'configmaps'}`;
}

function pathOf(name: ConfigMapName): ApiPath {
  const kinds = kindOf(name) === 'Secret' ? 'secrets' : 'configmaps';
  return apiPath`/api/v1/namespaces/${name.namespace}/${kinds}/${name.name}`;
}

function isSame(a: Data, b: Data): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

function requireFit(doing: string, data: Data): void {
  const bytes = bytesOf(data);
  if (bytes <= CONFIG_MAP_LIMIT) return;
  throw new CurlewError('CLUSTER_FAILED', `${doing}: it would have ${bytes} bytes, of ${CONFIG_MAP_LIMIT} at most`);
}

/** What counts against the limit. */
export function bytesOf(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0);
}

function writeRequest(wanted: ConfigMapName, before: ConfigMap | undefined, data: Data): ApiRequest {
  const { namespace, name } = wanted;
  const kind = kindOf(wanted);
  const { metadata = {}, ...rest } = before?.object ?? { apiVersion: 'v1', kind };
  const { labels, annotations, ...others } = isObject(metadata) ? metadata : {};
  const { [LAST_APPLIED]: _stale, ...notes } = isObject(annotations) ? annotations : {};
  const labelled = {
    ...others,
    annotations: notes,
    name,
    namespace,
    labels: { ...(isObject(labels) ? labels : {}), ...LABEL },
  };
  const values = kind === 'Secret' ? mapped(data, (text) => Buffer.from(text).toString('base64')) : data;
  const document = JSON.stringify({ ...rest, metadata: labelled, data: values });
  if (before === undefined) return { verb: 'create', path: folderOf(wanted), document };
  return { verb: 'replace', path: pathOf(wanted), document };
}

function mapped(data: Data, change: (text: string) => string): Data {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, change(text)]));
}

async function makeNamespace(
  call: (doing: string, request: ApiRequest) => Promise<Called>,
  name: string,
): Promise<void> {
  const document = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await call(`make namespace ${name}`, { verb: 'create', path: apiPath`/api/v1/namespaces`, document });
}

function configMapOf(name: ConfigMapName, value: unknown, doing: string): ConfigMap {
  const bad = (what: string): CurlewError => new CurlewError('CLUSTER_FAILED', `${doing}: ${what}`);
  if (!isObject(value) || !isObject(value['metadata'])) throw bad(`the answer is no ${kindOf(name)}`);
  const { data = {} } = value;
  if (!isObject(data) || !Object.values(data).every((text) => typeof text === 'string'))
    throw bad('its data is no map');
  const { managedFields: _fields, ...metadata } = value['metadata'];
  const { labels } = metadata;
  const ours = isObject(labels) && Object.entries(LABEL).every(([key, text]) => labels[key] === text);
  const texts = data as Data;
  const read = kindOf(name) === 'Secret' ? mapped(texts, (text) => Buffer.from(text, 'base64').toString()) : texts;
  return { data: read, ours, object: { ...value, metadata } };
}

type Called =
  | { readonly outcome: 'done'; readonly value: unknown }
  | { readonly outcome: 'not found' | 'taken' | 'conflict' };

/** Asks again while the API server is away, as it is for a moment when its node is upgraded. */
async function callPatiently(
  api: KubeApi,
  doing: string,
  request: ApiRequest,
  { patienceMs, signal }: ClientOptions,
): Promise<Called> {
  const until = performance.now() + patienceMs;
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, 4000)) {
    const answer = await api.ask(request, { signal });
    if (answer.kind === 'answer') return { outcome: 'done', value: answer.value };
    const { problem, said, hint } = answer;
    if (problem === 'not found' || problem === 'taken' || problem === 'conflict') return { outcome: problem };
    if (problem === 'unreachable' && performance.now() + waitMs < until) {
      await pause(waitMs, undefined, { signal });
      continue;
    }
    throw new CurlewError('CLUSTER_FAILED', `${doing}: ${said}`, {
      hint: hint ?? (problem === 'unreachable' ? NOT_RUNNING : NOT_DONE),
    });
  }
}

const NOT_RUNNING = 'see that the API server is running (crictl ps -a), then run the same command again: it resumes';
const NOT_DONE = 'see what the API server says to this, then run the same command again';
