/** The report of a node of kubeadm's about its cluster: nodes, add-ons and pods with their reasons, certificates, and the disk of images. */
import { readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { healthOf } from '../../cluster/channel/health.ts';
import { decodeRecords } from '../../cluster/channel/record.ts';
import type { Context } from '../../core/context.ts';
import { asError, unless } from '../../core/errors.ts';
import { fieldsOf } from '../../core/json.ts';
import { CHANNEL_RECORDS } from '../../core/layout.ts';
import { diagnose } from '../../cluster/deliver/diagnose.ts';
import { openApi, type KubeApi } from '../../cluster/kube/api.ts';
import { openCalls } from '../../cluster/kube/call.ts';
import { configMapClient } from '../../cluster/kube/config-map.ts';
import { madeIn } from '../../cluster/kube/kubeadm-made.ts';
import { listObjects, mapObjects, type LiveObject } from '../../cluster/kube/objects.ts';
import type { SeenMachine } from '../cluster.ts';
import { brokenIn, brokenScript } from '../facts.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { runProgram } from '../../platform/process/run-program.ts';
import { attemptProblems, lastAttempt, type Attempt } from './attempts.ts';
import {
  certificateOf,
  certificatesIn,
  expiredProblems,
  KUBELET_CERTIFICATE,
  type NodeCertificate,
} from './certificates.ts';
import { seenNode } from './nodes.ts';
import { quorumProblem } from './quorum.ts';
import { NODES, PODS } from '../../cluster/kube/core-kinds.ts';

export interface NodeHealth {
  readonly name: string;
  readonly role: NonNullable<SeenMachine['role']>;
  /** Version of its kubelet. */
  readonly version: string;
  readonly cordoned: boolean;
  /** Why it is not ready; empty if it is. */
  readonly reason: string;
}

export interface Unhealthy {
  /** `namespace/name`. */
  readonly name: string;
  readonly reason: string;
}

export interface ClusterHealth {
  /** Empty if the API server was not asked: only control planes have the credentials for it. */
  readonly nodes: readonly NodeHealth[];
  /** Add-ons of channels and fleets that are not installed as they should be. */
  readonly addons: readonly Unhealthy[];
  /** Pods that are not ready, at most {@link MAX_PODS}; `morePods` is the number of the others. */
  readonly pods: readonly Unhealthy[];
  readonly morePods: number;
  /** Certificates of this node, that which expires first at the beginning. `expires` is in ISO 8601. */
  readonly certificates: readonly { readonly name: string; readonly expires: string }[];
  /** The last attempt to renew those of kubeadm; absent before the first one. */
  readonly renewal?: Attempt | undefined;
  /** The last attempt to save etcd in the install folder, and to copy that; absent before the first one. */
  readonly snapshot?: Attempt | undefined;
  /** How full the disk of images is, in percent of its bytes, and from which percentage on the kubelet removes images. */
  readonly images: { readonly folder: string; readonly used: number; readonly limit: number } | undefined;
  /** Components that a node needs and does not run on this machine, such as `etcd has no manifest`; none where it was not asked for. */
  readonly broken: readonly string[];
  /** Facts that could not be found out, and why. */
  readonly problems: readonly string[];
}

export interface HealthFolders {
  readonly kubernetes: string;
  readonly kubelet: string;
  readonly images: string;
  /** For tests; of the paths that `brokenScript` asks. */
  readonly root?: string;
}

const FOLDERS: HealthFolders = {
  kubernetes: '/etc/kubernetes',
  kubelet: '/var/lib/kubelet',
  images: '/var/lib/containerd',
};
const MAX_PODS = 10;
const FILE_LIMIT = 1 << 20;
/** A person waits for the answer, and an API server that is down is one. */
const PATIENCE_MS = 5000;
const BROKEN_MS = 60_000;
/** imageGCHighThresholdPercent, defaults.go of the kubelet's configuration. */
const COLLECTS_AT = 85;

/** Undefined if kubeadm has not made this machine a node. Whatever cannot be found out is a problem, never an error. */
export async function clusterHealth(
  { env, user, signal }: Pick<Context, 'env' | 'user' | 'signal'>,
  folders: HealthFolders = FOLDERS,
): Promise<ClusterHealth | undefined> {
  const problems: string[] = [];
  const attempt = async <T>(what: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await what;
    } catch (error) {
      signal.throwIfAborted();
      problems.push(asError(error).message);
      return otherwise;
    }
  };
  const { kubernetes } = folders;
  if ((await madeIn(kubernetes)) === 'none') return undefined;
  const all = await attempt(certificatesOf(folders), []);
  const certificates = all.flatMap(({ name, expires }) => {
    return expires === undefined ? [] : [{ name, expires: new Date(expires).toISOString() }];
  });
  const damaged = all.filter(({ expires }) => expires === undefined);
  problems.push(...damaged.map(({ name }) => `${name} is damaged: it has no certificate that can be read`));
  problems.push(...expiredProblems(certificates));
  const renewal = await attempt(lastAttempt(kubernetes, 'renewal'), undefined);
  const snapshot = await attempt(lastAttempt(kubernetes, 'snapshot'), undefined);
  problems.push(...attemptProblems('renewal', renewal), ...attemptProblems('snapshot', snapshot));
  const stopped = await attempt(stoppedIn(kubernetes), []);
  if (stopped.length > 0) {
    problems.push(`a command that was cut has left ${stopped.join(', ')} stopped: run it again, or curlew node repair`);
  }
  // Only root may ask the container runtime.
  const found = user === 0 ? await attempt(brokenOn(folders, { env, signal }), []) : [];
  const broken = found.filter((text) => !stopped.some((name) => text.startsWith(`${name} `)));
  const images = await attempt(imagesDisk(folders), undefined);
  // The operator's own KUBECONFIG may lead to another cluster.
  const access = { ...env, KUBECONFIG: join(kubernetes, 'admin.conf') };
  const before = problems.length;
  const askOwn = async () => {
    const api = await openApi({ env: access, deadlineMs: PATIENCE_MS });
    return api && askCluster(api, signal);
  };
  // Both may take seconds to say nothing.
  const [lost, live] = await Promise.all([quorumProblem({ signal }), attempt(askOwn(), undefined)]);
  // Without etcd, an API server answers with anything but the reason.
  if (lost !== undefined) problems.splice(before, Infinity, `${lost.message}: ${lost.hint}`);
  const own = { certificates, renewal, snapshot, images, broken, problems };
  return { nodes: [], addons: [], pods: [], morePods: 0, ...(lost === undefined && live), ...own };
}

async function askCluster(
  api: KubeApi,
  signal: AbortSignal,
): Promise<Pick<ClusterHealth, 'nodes' | 'addons' | 'pods' | 'morePods'>> {
  const options = { patienceMs: PATIENCE_MS, signal };
  const call = openCalls(api, options);
  const nodes = (await mapObjects(call, NODES, {}, nodeHealth)) ?? [];
  const records = decodeRecords((await configMapClient(api, options).read(CHANNEL_RECORDS))?.data ?? {}).records;
  const addons = [...records.values()].filter(({ state }) => state !== 'Succeeded');
  const all = (await listObjects(call, PODS)) ?? [];
  const waiting = all.flatMap((pod) => {
    const { state, reason } = healthOf({ ...pod, kind: PODS.kind });
    return state === 'healthy' ? [] : [{ pod, reason }];
  });
  const pods: Unhealthy[] = [];
  for (const { pod, reason } of waiting.slice(0, MAX_PODS)) {
    const [line = ''] = await diagnose({ call }, PODS, pod);
    const { namespace = '', name } = pod.metadata;
    const text = line === '' ? reason : `${reason}; ${line}`;
    pods.push({ name: `${namespace}/${name}`, reason: `${text}${imageHint(pod, text)}` });
  }
  return {
    nodes,
    addons: addons.map(({ namespace, addon, state, reason }) => ({
      name: `${namespace}/${addon}`,
      reason: `${state}: ${reason}`,
    })),
    pods,
    morePods: waiting.length - pods.length,
  };
}

/** Nothing can be pulled in a cluster from a bundle, and each node has images of its own. */
function imageHint({ spec }: LiveObject, text: string): string {
  const { nodeName } = fieldsOf(spec);
  if (typeof nodeName !== 'string' || !/\b(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull)\b/.test(text)) return '';
  return `; if the image is in the bundle: ./tasks.sh load-images on ${nodeName}`;
}

function nodeHealth(node: Parameters<typeof seenNode>[0]): NodeHealth {
  const { name, role = 'worker', kubelet = '', cordon, ready } = seenNode(node);
  const reason = healthOf({ ...node, kind: NODES.kind }).reason;
  return {
    name,
    role,
    version: kubelet.replace(/^v/, ''),
    cordoned: cordon !== undefined,
    reason: ready ? '' : reason || 'is not ready',
  };
}

async function certificatesOf({ kubernetes, kubelet }: HealthFolders): Promise<readonly NodeCertificate[]> {
  const own = await certificateOf(kubelet, KUBELET_CERTIFICATE);
  const all = [...(await certificatesIn(kubernetes)), ...(own === undefined ? [] : [own])];
  return all.toSorted((a, b) => (a.expires ?? 0) - (b.expires ?? 0));
}

/** Components whose files the kubernetes package has moved away from the kubelet (kubernetes_stop_pods in its install.sh). */
async function stoppedIn(kubernetes: string): Promise<readonly string[]> {
  const names = (await unless(['ENOENT'], readdir(join(kubernetes, 'curlew/manifests')))) ?? [];
  return names.map((name) => name.replace(/\.yaml$/, '')).toSorted();
}

/** The same as machines say over SSH, without the API server. */
async function brokenOn(
  { root }: HealthFolders,
  { env, signal }: Pick<Context, 'env' | 'signal'>,
): Promise<readonly string[]> {
  const { stdout } = await runProgram('sh', ['-c', brokenScript(root)], { env, limitMs: BROKEN_MS, signal });
  return brokenIn(stdout);
}

async function imagesDisk({ images: folder, kubelet }: HealthFolders): Promise<ClusterHealth['images']> {
  const text = (await readFound(join(kubelet, 'config.yaml'), FILE_LIMIT))?.toString() ?? '';
  const limit = Number(/^imageGCHighThresholdPercent: *(\d+) *$/m.exec(text)?.[1] ?? COLLECTS_AT);
  const disk = await unless(['ENOENT'], statfs(folder));
  return disk && { folder, used: Math.round(100 * (1 - disk.bavail / disk.blocks)), limit };
}
