/** The work of an upgrade of Kubernetes or of the container runtime on a node around the hooks of its run. */
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { counted } from '../../core/counted.ts';
import type { Etcd } from '../../cluster/kube/etcd.ts';
import { getObject } from '../../cluster/kube/objects.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import { nextNodes, whyNotUpgrade, type NodeVersions } from '../node-upgrade.ts';
import { isSemver, requireVersion } from '../versions.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { drainNode, leftToDrain, refusedEvictions } from './drain.ts';
import { markUpgrading, runtimeOf, seenNode, seenNodes, uncordonNode, type NodeApi } from './nodes.ts';
import { keepSnapshot } from './snapshots.ts';
import { CONFIG_MAPS, NODES } from '../../cluster/kube/core-kinds.ts';

export interface UpgradedNode {
  readonly node: string;
  /** The versions of the bundle, without `v`; undefined for what the run does not install. */
  readonly kubernetes: string | undefined;
  readonly containerd: string | undefined;
  /** This run upgrades the control plane of the cluster itself. */
  readonly leads: boolean;
  /** The rights are those of an administrator, not of the kubelet. */
  readonly isAdmin: boolean;
  /** The install folder. */
  readonly directory: string;
  /** Time limit of the drain, in milliseconds. */
  readonly limitMs: number;
  /** A run before this one was to wait for the node and to uncordon it, and was cut. */
  readonly owed: boolean;
}

export interface NodeUpgrade {
  readonly node: string;
  /** From which versions to which. */
  readonly because: string;
  /** The steps, in their order. */
  readonly steps: readonly string[];
  /** Obstacles: budgets that allow no eviction for now, and APIs in use that the version no longer has. */
  readonly notes: readonly string[];
  /**
   * Once all images are on the node, before the first hook. `CLUSTER_FAILED` if the node is not drained in time. Absent where only the end of an
   * upgrade is left.
   */
  readonly begin: (() => Promise<void>) | undefined;
  /** After the last hook: lifts the cordon of `begin` once the node is well. Returns what is next. */
  readonly finish: () => Promise<string>;
}

const READY_MS = 5 * 60_000;
const METRICS_IDLE_MS = 15_000;
const MAX_NAMED = 20;

/**
 * Looks only. Undefined where nothing changes that pods would notice, and no upgrade has left the node cordoned. `CLUSTER_FAILED` for a
 * version that the node must not have next.
 */
export async function planNodeUpgrade(
  cluster: NodeApi & { readonly openEtcd: () => Promise<Etcd | undefined> },
  request: UpgradedNode,
  context: Pick<Context, 'report' | 'signal'>,
): Promise<NodeUpgrade | undefined> {
  const { call } = cluster;
  const { node, leads, isAdmin } = request;
  const { report, signal } = context;
  const live = await getObject(call, NODES, { name: node });
  if (live === undefined) return undefined;
  const { kubelet = '', cordon, cordonFor } = seenNode(live);
  const wanted = request.kubernetes === undefined ? undefined : `v${request.kubernetes}`;
  const versions = wanted === undefined ? undefined : await versionsOf(wanted);
  const runtime = runtimeOf(live);
  const isOther = request.containerd !== undefined && !isRuntime(runtime, request.containerd);
  const isBehind = versions !== undefined && (kubelet !== wanted || (leads && versions.cluster !== wanted));
  const changes = [
    ...(isOther ? [`${runtime} -> ${request.containerd ?? ''}`] : []),
    ...(isBehind ? [`Kubernetes ${kubelet} -> ${wanted ?? ''}`] : []),
  ];
  const isLeft = cordonFor !== undefined || request.owed;
  if (changes.length === 0 && !isLeft) return undefined;
  const others = versions?.others ?? [];
  // Evicted from the only node, pods would wait for it.
  const moves = !isAdmin || others.some((one) => one.ready === true && one.cordon === undefined);
  const pods = moves && changes.length > 0 ? await leftToDrain(cluster, node) : undefined;
  const saves = leads && versions !== undefined && versions.cluster !== wanted;
  const before = [
    ...(saves ? ['save etcd'] : []),
    cordon === 'other' ? `${node} is cordoned already, and stays so` : `cordon ${node}`,
    pods === undefined
      ? `no drain: no other node takes pods, so those of ${node} stay, and may restart`
      : `drain it: ${counted(pods.toEvict.length, 'pod')}`,
  ];
  const end = cordon === 'other' ? `wait until ${node} is ready` : `wait until ${node} is ready, and uncordon it`;
  return {
    node,
    because: changes.length === 0 ? 'an upgrade was cut before it' : changes.join(', '),
    steps: changes.length === 0 ? [end] : [...before, ...changes, end],
    notes: [
      ...(pods === undefined
        ? []
        : [
            ...(await refusedEvictions(cluster, pods, { signal })).map((text) => `not yet: ${text}`),
            ...pods.lost.map((text) => `will be lost: ${text}`),
          ]),
      ...(isBehind && isAdmin ? await removedApis(cluster, versions.wanted, signal) : []),
    ],
    begin: changes.length === 0 ? undefined : begin,
    finish: async () => {
      const isWell = async (): Promise<boolean> => {
        const object = await getObject(call, NODES, { name: node });
        if (object === undefined) return false;
        const now = seenNode(object);
        return now.ready === true && (wanted === undefined || now.kubelet === wanted);
      };
      if (!(await repeatUntil(isWell, (well) => well, { firstMs: 500, maxMs: 4000, limitMs: READY_MS, signal }))) {
        throw new CurlewError('CLUSTER_FAILED', `${node} is not ready with ${wanted ?? kubelet}, and stays cordoned`, {
          hint: 'journalctl -u kubelet shows why; then run the same command again',
        });
      }
      const now = await getObject(call, NODES, { name: node });
      if (now !== undefined && seenNode(now).cordonFor !== undefined) await uncordonNode(call, node);
      return changes.length === 0 && versions === undefined ? `${node} takes pods again` : nextText(versions, isAdmin);
    },
  };

  async function begin(): Promise<void> {
    if (saves) {
      using etcd = await cluster.openEtcd();
      const kept = { directory: request.directory, upgradeTo: wanted, report, signal };
      const file = etcd && (await keepSnapshot(etcd, new Date(), kept));
      const text = file === undefined ? 'etcd is not saved: it is not on this machine' : `etcd is saved: ${file}`;
      report({ type: 'note', level: 'info', text });
    }
    if (cordon === undefined) await markUpgrading(call, node, wanted ?? kubelet);
    if (pods === undefined) return;
    const text = `${node}: no new pods, and evicting those that it has; kubectl uncordon ${node} ends this, if you do not continue`;
    report({ type: 'note', level: 'info', text });
    const release = cordon === undefined ? async () => uncordonNode(call, node) : undefined;
    await drainNode(cluster, node, { limitMs: request.limitMs, release, report, signal });
  }

  async function versionsOf(to: string): Promise<NodeVersions | undefined> {
    // Builds of one's own may have other versions: then no rule is known.
    if (!isSemver(to) || !isSemver(kubelet)) return undefined;
    const all = isAdmin ? await seenNodes(call) : [];
    const others = all.filter(({ name }) => name !== node);
    const versions = { kubelet, cluster: await clusterVersion(cluster), wanted: to, leads, others };
    const why = whyNotUpgrade(versions);
    if (why === undefined) return versions;
    throw new CurlewError('CLUSTER_FAILED', `cannot upgrade ${node}: ${why}`, {
      hint: 'use a bundle with another version of kubernetes, or upgrade the other node first',
    });
  }
}

/** containerd adds its distribution's revision to the version. */
function isRuntime(runtime: string, version: string): boolean {
  const [, current = ''] = /^containerd:\/\/v?(\d+\.\d+\.\d+)/.exec(runtime) ?? [];
  return current === version || !/^\d+\.\d+\.\d+$/.test(version);
}

/** The version to which kubeadm has brought the cluster. Its kubelets may read it, too. */
async function clusterVersion({ call }: NodeApi): Promise<string> {
  const configMap = await getObject(call, CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' });
  const text = (configMap?.['data'] as Readonly<Record<string, unknown>> | undefined)?.['ClusterConfiguration'];
  const [, version = ''] = /^kubernetesVersion: ["']?([^\s"']+)/m.exec(typeof text === 'string' ? text : '') ?? [];
  if (isSemver(version)) return version;
  throw new CurlewError('CLUSTER_FAILED', 'cannot upgrade: the ConfigMap kube-system/kubeadm-config has no version', {
    hint: 'kubeadm init phase upload-config kubeadm writes it again',
  });
}

/**
 * Deprecated APIs that clients have asked for since the API server started, and that the version no longer has
 * (kubernetes.io/docs/reference/using-api/deprecation-guide).
 */
async function removedApis({ api }: NodeApi, wanted: string, signal: AbortSignal): Promise<readonly string[]> {
  const { minor } = requireVersion(wanted);
  const problems: string[] = [];
  const onLine = (line: string): void => {
    if (!line.startsWith('apiserver_requested_deprecated_apis{') || line.endsWith(' 0')) return;
    const labels = new Map([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]));
    const [, removed] = /^1\.(\d+)$/.exec(labels.get('removed_release') ?? '') ?? [];
    if (removed === undefined || Number(removed) > minor || problems.length === MAX_NAMED) return;
    const group = [labels.get('group'), labels.get('version')].filter((part) => part !== '').join('/');
    problems.push(`${group} ${labels.get('resource')} is in use, and Kubernetes 1.${removed} no longer has it`);
  };
  const problem = await api.follow(apiPath`/metrics`, { signal, idleMs: METRICS_IDLE_MS, onLine });
  return problem === undefined ? problems : [`APIs in use are unknown: ${problem.message}`];
}

function nextText(versions: NodeVersions | undefined, isAdmin: boolean): string {
  if (versions === undefined) return 'next: ./upgrade.sh of the bundle on the other nodes';
  if (!isAdmin)
    return 'next: ./upgrade.sh on the next worker; kubectl get nodes on a control plane shows which are left';
  const names = nextNodes(versions);
  if (names.length === 0) return `all nodes have ${versions.wanted}`;
  return `next: ./upgrade.sh of the bundle on ${names.length > 1 ? `one after the other of ${names.join(', ')}` : names.join('')}`;
}
