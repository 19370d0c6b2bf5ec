/** The cluster of a node: its identity, and the state that is recorded in it. */
import type { Cancellable } from '../../core/cancellable.ts';
import { channelOwners } from './channel-owners.ts';
import { type ClusterRecords, parseClusterRecords, type RecordsChange, withRecords } from './cluster-records.ts';
import { configMapClient, type ConfigMapName, type Data } from '../../cluster/kube/config-map.ts';
import {
  CURRENT_CONFIG,
  CURRENT_SECRET,
  keptData,
  KURL_CONFIG,
  type KurlData,
  type KurlState,
  LAST_CONFIG,
  LAST_SECRET,
} from './kurl-config.ts';
import { isClusterUid } from '../plan/records.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { CHANNEL_RECORDS, RUN_RECORDS } from '../../core/layout.ts';
import { type KubeApi, openApi } from '../../cluster/kube/api.ts';
import { askSettled, SETTLE_MS } from '../../cluster/kube/call.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { CONTROL_PLANE_LABELS } from '../../cluster/kube/core-kinds.ts';

/** A cluster whose API server has answered. Each call throws `CLUSTER_FAILED` if it stops answering for a while. */
export interface NodeCluster {
  /** UID of its kube-system namespace; it identifies the cluster. */
  readonly uid: string;
  /** `absent`: there are none. `foreign`: they describe another cluster. */
  readonly readRecords: () => Promise<ClusterRecords | 'absent' | 'foreign'>;
  readonly writeRecords: (change: RecordsChange) => Promise<void>;
  /** The channels of add-ons that channels keep, by the names of the add-ons. */
  readonly readChannelOwners: () => Promise<ReadonlyMap<string, string>>;
  /** kubeadm's ClusterConfiguration; undefined if kubeadm did not create the cluster. */
  readonly readKubeadm: () => Promise<string | undefined>;
  readonly readNodes: () => Promise<readonly ClusterNode[]>;
  /** kURL's state; undefined if kURL has written none. */
  readonly readKurl: () => Promise<KurlState | undefined>;
  /** Copies kURL's current state to its last state, at the start of a run. */
  readonly keepKurl: () => Promise<void>;
  /** Replaces kURL's current state. */
  readonly beginKurl: (data: KurlData) => Promise<void>;
  /** Adds keys to kURL's current state. */
  readonly addKurl: (data: KurlData) => Promise<void>;
  /** Removes keys of kURL's current state. */
  readonly removeKurl: (keys: readonly string[]) => Promise<void>;
}

export interface OpenClusterOptions extends Cancellable {
  /** KUBECONFIG and proxy variables, which determine the cluster and how to reach it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How long the API server may later be unreachable before that is an error. */
  readonly patienceMs?: number;
  /** Timeout of one request. */
  readonly answerMs?: number;
}

const PATIENCE_MS = 30_000;
const KUBEADM_CONFIG: ConfigMapName = { namespace: 'kube-system', name: 'kubeadm-config' };

/**
 * Undefined if there is no kubeconfig or the API server does not respond. `CLUSTER_FAILED` if it answers with a refusal.
 */
export async function openCluster({
  env,
  patienceMs = PATIENCE_MS,
  answerMs,
  signal,
}: OpenClusterOptions): Promise<NodeCluster | undefined> {
  const api = await openApi({ env, deadlineMs: answerMs });
  if (api === undefined) return undefined;
  const settleMs = Math.min(patienceMs, SETTLE_MS);
  const request = { verb: 'get', path: apiPath`/api/v1/namespaces/kube-system` } as const;
  const answer = await askSettled(api, request, { settleMs, signal });
  if (answer.kind === 'problem') {
    if (answer.problem === 'unreachable' || answer.problem === 'not found') return undefined;
    throw new CurlewError('CLUSTER_FAILED', `cannot find the cluster: ${answer.message}`, {
      hint: `${answer.hint ?? 'check which server responds there'}; if this node is in no cluster, set KUBECONFIG to a file that does not exist`,
    });
  }
  const uid = uidOf(answer.value);
  const maps = configMapClient(api, { patienceMs, settleMs, signal });
  /** Creates no Secret without content; a missing Secret is looked up only once. */
  const absent = new Set<ConfigMapName>();
  const changeSecret = async (name: ConfigMapName, change: (before: Data) => Data): Promise<void> => {
    if (Object.keys(change({})).length === 0) {
      if (absent.has(name)) return;
      if ((await maps.read(name)) === undefined) {
        absent.add(name);
        return;
      }
    }
    absent.delete(name);
    await maps.change(name, (before) => change(before ?? {}));
  };
  return {
    uid,
    readRecords: async () => {
      const stored = await maps.read(RUN_RECORDS);
      return stored === undefined ? 'absent' : (parseClusterRecords(stored.data, uid) ?? 'foreign');
    },
    writeRecords: async (change) => {
      await maps.change(RUN_RECORDS, (before) => withRecords(before, uid, change));
    },
    readChannelOwners: async () => channelOwners((await maps.read(CHANNEL_RECORDS))?.data ?? {}),
    readKubeadm: async () => (await maps.read(KUBEADM_CONFIG))?.data['ClusterConfiguration'],
    readNodes: async () => readNodes(api, { signal }),
    readKurl: async () => {
      const [current, last, config] = await Promise.all([CURRENT_CONFIG, LAST_CONFIG, KURL_CONFIG].map(maps.read));
      const byKurl = [current, last, config].some((map) => map?.ours === false);
      return byKurl ? { current: current?.data, last: last?.data, config: config?.data } : undefined;
    },
    keepKurl: async () => {
      const [current, secret] = await Promise.all([CURRENT_CONFIG, CURRENT_SECRET, LAST_CONFIG].map(maps.read));
      const saved = keptData(current?.data ?? {}, secret?.data ?? {});
      await changeSecret(LAST_SECRET, () => saved.secret);
      await maps.change(LAST_CONFIG, () => saved.shown);
    },
    beginKurl: async ({ shown, secret }) => {
      await changeSecret(CURRENT_SECRET, () => secret);
      await maps.change(CURRENT_CONFIG, () => shown);
    },
    addKurl: async ({ shown, secret }) => {
      await changeSecret(CURRENT_SECRET, (before) => {
        const others = Object.entries(before).filter(([key]) => !Object.hasOwn(shown, key));
        return { ...Object.fromEntries(others), ...secret };
      });
      await maps.change(CURRENT_CONFIG, (before) => ({ ...before, ...shown }));
    },
    removeKurl: async (keys) => {
      const others = (before: Data): Data =>
        Object.fromEntries(Object.entries(before).filter(([key]) => !keys.includes(key)));
      await changeSecret(CURRENT_SECRET, others);
      await maps.change(CURRENT_CONFIG, (before) => others(before ?? {}));
    },
  };
}

function uidOf(value: unknown): string {
  const uid = isObject(value) && isObject(value['metadata']) ? value['metadata']['uid'] : undefined;
  if (typeof uid === 'string' && isClusterUid(uid)) return uid;
  throw new CurlewError('CLUSTER_FAILED', 'cannot find the cluster: its kube-system namespace has no uid');
}

export interface ClusterNode {
  readonly name: string;
  /** `True`, `False` or `Unknown`: its condition Ready; empty if it has none yet. */
  readonly ready: string;
  readonly controlPlane: boolean;
}

const PAGE = 100;
const MAX_PAGES = 100;

/** `CLUSTER_FAILED` if the API server does not return the list. */
export async function readNodes(api: KubeApi, { signal }: Cancellable): Promise<readonly ClusterNode[]> {
  const nodes: ClusterNode[] = [];
  let next = '';
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const path =
      next === '' ? apiPath`/api/v1/nodes?limit=${PAGE}` : apiPath`/api/v1/nodes?limit=${PAGE}&continue=${next}`;
    const answer = await api.ask({ verb: 'get', path }, { signal });
    if (answer.kind === 'problem') {
      throw new CurlewError('CLUSTER_FAILED', `cannot list the nodes: ${answer.message}`, { hint: answer.hint });
    }
    const { items, metadata } = isObject(answer.value) ? answer.value : {};
    if (Array.isArray(items)) nodes.push(...items.map(nodeOf));
    next = isObject(metadata) && typeof metadata['continue'] === 'string' ? metadata['continue'] : '';
    if (next === '') break;
  }
  return nodes;
}

function nodeOf(item: unknown): ClusterNode {
  const { metadata, status } = fieldsOf(item);
  const name = isObject(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : '?';
  const conditions: unknown = isObject(status) ? status['conditions'] : undefined;
  const condition = (Array.isArray(conditions) ? conditions : []).find(
    (one) => isObject(one) && one['type'] === 'Ready',
  );
  const labels = isObject(metadata) && isObject(metadata['labels']) ? metadata['labels'] : {};
  const controlPlane = CONTROL_PLANE_LABELS.some((label) => Object.hasOwn(labels, label));
  return {
    name,
    ready: isObject(condition) && typeof condition['status'] === 'string' ? condition['status'] : '',
    controlPlane,
  };
}
