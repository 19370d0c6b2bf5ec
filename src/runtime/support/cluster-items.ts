/** Dumps of the cluster where Troubleshoot's own programs look for them: objects without secret values, and logs of pods. */
import { access } from 'node:fs/promises';
import { fieldsOf, isObject, listOf } from '../../core/json.ts';
import { secretsIn, type Secret } from '../../core/secret.ts';
import { healthOf } from '../../cluster/channel/health.ts';
import { parseSelector } from '../../cluster/channel/prune.ts';
import { openApi } from '../../cluster/kube/api.ts';
import { openCalls, type Call } from '../../cluster/kube/call.ts';
import { listObjects, type LiveObject } from '../../cluster/kube/objects.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { withQuery, type Resource } from '../../cluster/kube/resources.ts';
import { CollectProblem } from '../preflight/host.ts';
import type { CollectorSpec } from '../preflight/spec.ts';
import type { Item } from './collect.ts';
import { plainObject } from './redact.ts';
import { ADMIN_CONF } from '../../cluster/kube/session.ts';

/** A person waits: an API server that is down is one of the answers. */
const PATIENCE_MS = 5000;
/** One whose etcd is gone takes requests and never answers them. */
const ANSWER_MS = 10_000;
const LIST_MS = 60_000;
/** The last lines of a log. */
const [MAX_LINES, LOG_BYTES, MAX_LOGS] = [2000, 4 << 20, 200];

/** Names of folders by kind, and how its objects are requested. */
const KINDS: Readonly<
  Record<string, readonly [folder: string, apiVersion: string, plural: string, clusterWide?: true]>
> = {
  Namespace: ['namespaces', 'v1', 'namespaces', true],
  Node: ['nodes', 'v1', 'nodes', true],
  PersistentVolume: ['pvs', 'v1', 'persistentvolumes', true],
  StorageClass: ['storage-classes', 'storage.k8s.io/v1', 'storageclasses', true],
  CustomResourceDefinition: [
    'custom-resource-definitions',
    'apiextensions.k8s.io/v1',
    'customresourcedefinitions',
    true,
  ],
  Pod: ['pods', 'v1', 'pods'],
  Event: ['events', 'v1', 'events'],
  Service: ['services', 'v1', 'services'],
  ConfigMap: ['configmaps', 'v1', 'configmaps'],
  Secret: ['secrets', 'v1', 'secrets'],
  PersistentVolumeClaim: ['pvcs', 'v1', 'persistentvolumeclaims'],
  ServiceAccount: ['serviceaccounts', 'v1', 'serviceaccounts'],
  Deployment: ['deployments', 'apps/v1', 'deployments'],
  ReplicaSet: ['replicasets', 'apps/v1', 'replicasets'],
  StatefulSet: ['statefulsets', 'apps/v1', 'statefulsets'],
  DaemonSet: ['daemonsets', 'apps/v1', 'daemonsets'],
  Job: ['jobs', 'batch/v1', 'jobs'],
  CronJob: ['cronjobs', 'batch/v1', 'cronjobs'],
  Ingress: ['ingress', 'networking.k8s.io/v1', 'ingresses'],
  NetworkPolicy: ['network-policy', 'networking.k8s.io/v1', 'networkpolicies'],
  PodDisruptionBudget: ['pod-disruption-budgets', 'policy/v1', 'poddisruptionbudgets'],
  Lease: ['leases', 'coordination.k8s.io/v1', 'leases'],
};

/** The collected objects, for analyzers. */
export interface CollectedCluster {
  /** Undefined if it is not known. */
  version?: string;
  /** By kind. */
  readonly objects: Map<string, readonly LiveObject[]>;
  /** Why there is nothing; undefined if the API server answers. */
  problem?: string;
}

interface ClusterPlan {
  readonly items: readonly Item[];
  readonly facts: CollectedCluster;
  /** Values of Secrets, to hide them everywhere. */
  readonly secrets: readonly Secret[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** The kubeconfig of this machine's own cluster, or that of the user; undefined if there is neither. */
async function kubeconfigOf(env: Env): Promise<string | undefined> {
  const isOwn = await access(ADMIN_CONF).then(
    () => true,
    () => false,
  );
  return isOwn ? ADMIN_CONF : env['KUBECONFIG'];
}

/**
 * Asks for names only, besides pods and the values to hide. An API server that does not answer is an item that fails. `answerMs` is for
 * tests: how long its first answer may take.
 */
export async function planClusterItems(
  specs: readonly CollectorSpec[],
  {
    env,
    signal,
    answerMs = ANSWER_MS,
  }: { readonly env: Env; readonly signal: AbortSignal; readonly answerMs?: number },
): Promise<ClusterPlan> {
  const facts: CollectedCluster = { objects: new Map() };
  const kubeconfig = await kubeconfigOf(env);
  if (kubeconfig === undefined) {
    facts.problem = 'this machine has no kubeconfig of the cluster';
    return { items: [], facts, secrets: [] };
  }
  try {
    const open = async (deadlineMs: number): Promise<Call> => {
      const api = await openApi({ env: { ...env, KUBECONFIG: kubeconfig }, deadlineMs });
      if (api === undefined) throw new CollectProblem(`${kubeconfig} names no cluster`);
      return openCalls(api, { patienceMs: Math.min(PATIENCE_MS, deadlineMs / 2), signal });
    };
    const first = await open(answerMs);
    await first('list namespaces', { verb: 'get', path: withQuery(apiPath`/api/v1/namespaces`, { limit: '1' }) });
    const call = await open(LIST_MS);
    const lists = createLists(call, facts);
    const namespaces = (await lists('Namespace')).map(({ metadata }) => metadata.name);
    const pods = await lists('Pod');
    // Without the right to read them they are not known here either.
    const secrets = await lists('Secret').catch(() => []);
    const items = [
      versionItem(call, facts),
      ...objectItems(lists, namespaces),
      ...podLogs(call, pods),
      ...specs.filter(({ excluded }) => !excluded).flatMap((spec) => specItems(call, spec, pods)),
    ];
    return { items, facts, secrets: secrets.flatMap(valuesOf) };
  } catch (error) {
    signal.throwIfAborted();
    facts.problem = error instanceof Error ? error.message : String(error);
    const failed: Item = { path: 'cluster-resources', source: kubeconfig, collect: async () => Promise.reject(error) };
    return { items: [failed], facts, secrets: [] };
  }
}

type Lists = (kind: string) => Promise<readonly LiveObject[]>;

/** Each kind is listed once for all namespaces. */
function createLists(call: Call, facts: CollectedCluster): Lists {
  const lists = new Map<string, Promise<readonly LiveObject[]>>();
  return async (kind) => {
    const known = lists.get(kind);
    if (known !== undefined) return known;
    const [, apiVersion = '', plural = '', clusterWide] = KINDS[kind] ?? [];
    const resource: Resource = { apiVersion, kind, plural, namespaced: clusterWide !== true };
    const list = (async () => {
      const objects = (await listObjects(call, resource)) ?? [];
      const named = objects.map((one) => ({ ...one, apiVersion, kind }));
      facts.objects.set(kind, named);
      return named;
    })();
    lists.set(kind, list);
    return list;
  };
}

function objectItems(lists: Lists, namespaces: readonly string[]): readonly Item[] {
  return Object.entries(KINDS).flatMap(([kind, [folder, apiVersion, plural, clusterWide]]) => {
    const itemFor = (namespace: string | undefined): Item => {
      const path = `cluster-resources/${folder}${namespace === undefined ? '' : `/${namespace}`}.json`;
      const collect = async () => {
        const all = await lists(kind);
        const own = all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
        if (own.length === 0 && namespace !== undefined) return [];
        return [{ path, value: { kind: `${kind}List`, apiVersion, metadata: {}, items: own.map(plainObject) } }];
      };
      return { path, source: `kubectl get ${plural}`, limit: LIST_MS, collect };
    };
    return clusterWide === true ? [itemFor(undefined)] : namespaces.map(itemFor);
  });
}

function versionItem(call: Call, facts: CollectedCluster): Item {
  const path = 'cluster-info/cluster_version.json';
  return {
    path,
    source: 'kubectl version',
    collect: async () => {
      const answer = await call('ask for the version', { verb: 'get', path: apiPath`/version` });
      const info = answer.outcome === 'done' ? fieldsOf(answer.value) : {};
      const { gitVersion } = info;
      if (typeof gitVersion === 'string') facts.version = gitVersion;
      return [{ path, value: { info, string: gitVersion } }];
    },
  };
}

/** Values of a Secret in plain text. Certificates are public, and single words of a longer text are none. */
function valuesOf({ data }: LiveObject): readonly Secret[] {
  return Object.values(fieldsOf(data)).flatMap((value) => {
    if (typeof value !== 'string' || value.length > VALUE_BYTES) return [];
    const text = Buffer.from(value, 'base64').toString('utf8');
    if (text.length < MIN_VALUE || text.startsWith('-----BEGIN CERT')) return [];
    return text.includes('\n') ? [text, value].flatMap((one) => secretsIn(one).slice(0, 1)) : secretsIn(text);
  });
}

const [MIN_VALUE, VALUE_BYTES] = [6, 64 << 10];

function containersOf({ spec }: LiveObject): readonly string[] {
  const { initContainers, containers } = fieldsOf(spec);
  const all = [initContainers, containers].flatMap(listOf);
  return all.flatMap((one) => (isObject(one) && typeof one['name'] === 'string' ? one['name'] : []));
}

/** The logs of pods that are not healthy, also those of containers that have ended before. */
function podLogs(call: Call, pods: readonly LiveObject[]): readonly Item[] {
  const failing = pods.filter((pod) => healthOf({ ...pod, kind: 'Pod' }).state !== 'healthy');
  const items = failing.flatMap((pod) =>
    containersOf(pod).flatMap((container) => {
      const { namespace = '', name } = pod.metadata;
      const path = `cluster-resources/pods/logs/${namespace}/${name}/${container}`;
      return [
        logItem(call, `${path}.log`, pod, container),
        logItem(call, `${path}-previous.log`, pod, container, true),
      ];
    }),
  );
  return items.slice(0, MAX_LOGS);
}

function logItem(call: Call, path: string, { metadata }: LiveObject, container: string, isPrevious = false): Item {
  const { namespace = '', name } = metadata;
  return {
    path,
    source: `kubectl logs --namespace ${namespace} ${name} --container ${container}${isPrevious ? ' --previous' : ''}`,
    collect: async () => {
      const at = withQuery(apiPath`/api/v1/namespaces/${namespace}/pods/${name}/log`, {
        container,
        tailLines: MAX_LINES,
        limitBytes: LOG_BYTES,
        previous: isPrevious ? 'true' : undefined,
      });
      const asked = call(`read the log of ${name}`, { verb: 'get', path: at, accept: '*/*', isText: true });
      // Where a container has not run, there is none.
      const answer = isPrevious ? await asked.catch(() => undefined) : await asked;
      return answer?.outcome === 'done' && typeof answer.value === 'string' ? [{ path, text: answer.value }] : [];
    },
  };
}

/** Resources that each bundle contains already. */
const ALWAYS: ReadonlySet<string> = new Set(['clusterInfo', 'clusterResources', 'secret', 'configMap']);

function specItems(call: Call, spec: CollectorSpec, pods: readonly LiveObject[]): readonly Item[] {
  const { kind, settings } = spec;
  if (ALWAYS.has(kind)) return [];
  const name = settings.text('name') ?? spec.name ?? kind;
  if (kind === 'logs') {
    const [namespace, wanted] = [settings.text('namespace'), settings.texts('containerNames')];
    const tests = (settings.texts('selector') ?? []).map((one) => parseSelector(one) ?? [() => false]).flat();
    const chosen = pods.filter(({ metadata }) => {
      const isThere = namespace === undefined || metadata.namespace === namespace;
      return isThere && tests.every((test) => test(metadata.labels));
    });
    const rows = chosen.flatMap((pod) =>
      containersOf(pod)
        .filter((container) => wanted?.includes(container) ?? true)
        .map((container) => logItem(call, `${name}/${pod.metadata.name}/${container}.log`, pod, container)),
    );
    return rows.slice(0, MAX_LOGS);
  }
  const problem = new CollectProblem(`the collector ${kind} is not known to this version`);
  return [{ path: `${kind}/${name}`, source: `collector ${kind}`, collect: async () => Promise.reject(problem) }];
}
