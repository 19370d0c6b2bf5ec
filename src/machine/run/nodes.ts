/** The nodes of the cluster that this machine is a control plane of, as the planner of machines sees them. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { openApi, type KubeApi } from '../../cluster/kube/api.ts';
import { openCalls, type Call } from '../../cluster/kube/call.ts';
import type { Etcd, Member } from '../../cluster/kube/etcd.ts';
import { madeIn } from '../../cluster/kube/kubeadm-made.ts';
import { getObject, listObjects, mergeObject, type LiveObject } from '../../cluster/kube/objects.ts';
import { apiPath } from '../../cluster/kube/path.ts';
import type { SeenMachine } from '../cluster.ts';
import { quorumProblem } from './quorum.ts';
import { taintText } from '../marks.ts';
import { CONTROL_PLANE_LABELS, NODES } from '../../cluster/kube/core-kinds.ts';
import { ADMIN_CONF } from '../../cluster/kube/session.ts';

/** The mark of a node that is being removed, with the time of its first attempt. */
const LEAVING = 'curlew.dev/leaving';
/** The mark of a node that an upgrade has cordoned, with the version that it goes to: only this cordon is lifted afterwards. */
const CORDON = 'curlew.dev/cordon';
const PATIENCE_MS = 60_000;

export interface NodeApi {
  readonly api: KubeApi;
  readonly call: Call;
}

/** `CLUSTER_FAILED` where etcd has lost its quorum, and where no kubeconfig leads to a cluster: that of KUBECONFIG, or else kubeadm's. */
export async function openNodeApi(context: Context, patienceMs?: number): Promise<NodeApi> {
  // A kubeconfig of another cluster has nothing to do with the etcd of this machine.
  const { KUBECONFIG = ADMIN_CONF } = context.env;
  const lost = KUBECONFIG === ADMIN_CONF ? await quorumProblem(context) : undefined;
  if (lost !== undefined) throw lost;
  const api = await openApi({ env: context.env });
  if (api === undefined) {
    throw new CurlewError('CLUSTER_FAILED', 'cannot find the cluster: this machine has no /etc/kubernetes/admin.conf', {
      hint: 'run it on a control plane, or set KUBECONFIG to the kubeconfig of an administrator',
    });
  }
  return withCalls(api, context, patienceMs);
}

/**
 * The cluster of this machine, whatever KUBECONFIG says, with the rights of an administrator or else those of the kubelet, which may change
 * its own node. Undefined where kubeadm has not finished, and for users who may read neither file: plans need no rights.
 */
export async function openOwnApi(
  context: Context,
  { folder = '/etc/kubernetes', patienceMs }: { readonly folder?: string; readonly patienceMs?: number } = {},
): Promise<(NodeApi & { readonly isAdmin: boolean }) | undefined> {
  if ((await madeIn(folder)) !== 'made') return undefined;
  for (const name of ['admin.conf', 'kubelet.conf'] as const) {
    const kubeconfig = join(folder, name);
    const isReadable = await access(kubeconfig, constants.R_OK).then(
      () => true,
      () => false,
    );
    const api = isReadable ? await openApi({ env: { ...context.env, KUBECONFIG: kubeconfig } }) : undefined;
    if (api !== undefined) return { ...withCalls(api, context, patienceMs), isAdmin: name === 'admin.conf' };
  }
  return undefined;
}

/** Whether the API server that the kubeconfig names answers a request that reads etcd. Asked once: a refusal takes no patience. */
export async function servesNodes(kubeconfig: string, { env, signal }: Context): Promise<boolean> {
  const api = await openApi({ env: { ...env, KUBECONFIG: kubeconfig } });
  // With a limit and no resourceVersion, no cache answers.
  const answer = await api?.ask({ verb: 'get', path: apiPath`/api/v1/nodes?limit=${1}` }, { signal });
  return answer?.kind === 'answer';
}

function withCalls(api: KubeApi, { signal, report }: Context, patienceMs = PATIENCE_MS): NodeApi {
  const onSlow = (text: string): void => report({ type: 'note', level: 'info', text });
  return { api, call: openCalls(api, { patienceMs, signal, onSlow }) };
}

const nodeSchema = v.object({
  spec: v.optional(
    v.object({
      unschedulable: v.optional(v.boolean(), false),
      taints: v.optional(
        v.array(v.object({ key: v.string(), value: v.exactOptional(v.string()), effect: v.string() })),
        [],
      ),
    }),
    {},
  ),
  status: v.optional(
    v.object({
      conditions: v.optional(v.array(v.object({ type: v.string(), status: v.string() })), []),
      addresses: v.optional(v.array(v.object({ type: v.string(), address: v.string() })), []),
      nodeInfo: v.optional(
        v.object({
          kubeletVersion: v.optional(v.string(), ''),
          containerRuntimeVersion: v.optional(v.string(), ''),
          osImage: v.optional(v.string(), ''),
        }),
        {},
      ),
    }),
    {},
  ),
});

/** The Nodes of the cluster. One whose kubelet has stopped reporting does not answer. */
export async function seenNodes(call: Call): Promise<readonly SeenMachine[]> {
  return ((await listObjects(call, NODES)) ?? []).map(seenNode);
}

/**
 * The Nodes, and the members of etcd by the names of their Nodes: in a cluster that curlew has not made, a member may have a name of its
 * own, and is known by its address. Members are undefined without etcd.
 */
export async function nodesAndMembers(
  call: Call,
  etcd: Pick<Etcd, 'members'> | undefined,
): Promise<{ readonly machines: readonly SeenMachine[]; readonly members: readonly Member[] | undefined }> {
  const [nodes = [], members] = await Promise.all([listObjects(call, NODES), etcd?.members()]);
  const machines = nodes.map(seenNode);
  const names = new Set(members?.map(({ name }) => name));
  const owners = new Map<string, string>();
  for (const node of nodes) {
    const { name, role } = seenNode(node);
    // A worker, or a new control plane, may have got the address of one that is gone.
    if (role !== 'control-plane' || names.has(name)) continue;
    for (const address of detailsOf(node).addresses) owners.set(address, name);
  }
  const isNode = new Set(machines.map(({ name }) => name));
  const named = (member: Member): Member => {
    // One without a name has not started yet.
    if (member.name === '' || isNode.has(member.name)) return member;
    const [name = member.name] = member.addresses.flatMap((address) => owners.get(address) ?? []);
    return { ...member, name };
  };
  return { machines, members: members?.map(named) };
}

/** Where a Node is reached within the cluster; none if it does not exist. */
export async function addressesOf(call: Call, name: string): Promise<readonly string[]> {
  return detailsOf((await getObject(call, NODES, { name })) ?? {}).addresses;
}

/** Facts that the planner does not ask for: addresses within the cluster, such as `Debian GNU/Linux 12 (bookworm)`, and taints. */
export function detailsOf(node: object) {
  const { spec, status } = v.parse(nodeSchema, node);
  const addresses = (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
  return { addresses, os: status.nodeInfo?.osImage ?? '', taints: spec.taints ?? [] };
}

export function seenNode(node: LiveObject): SeenMachine {
  const { name, labels, annotations } = node.metadata;
  const { spec, status } = v.parse(nodeSchema, node);
  const version = status.nodeInfo?.kubeletVersion ?? '';
  const ready = status.conditions?.find(({ type }) => type === 'Ready')?.status;
  const isControlPlane = Object.hasOwn(labels, CONTROL_PLANE_LABELS[0]);
  const isLeaving = Object.hasOwn(annotations, LEAVING);
  const cordonFor = spec.unschedulable ? annotations[CORDON] : undefined;
  return {
    name,
    answers: ready !== undefined && ready !== 'Unknown',
    joined: true,
    ready: ready === 'True',
    role: isControlPlane ? 'control-plane' : 'worker',
    kubelet: version,
    labels,
    taints: (spec.taints ?? []).map(taintText),
    ...(isControlPlane && { apiServer: version }),
    cordon: spec.unschedulable ? (isLeaving || cordonFor !== undefined ? 'curlew' : 'other') : undefined,
    ...(cordonFor !== undefined && { cordonFor }),
    // Opened again by a person, it takes new pods: the mark counts no more.
    leaving: isLeaving && spec.unschedulable,
  };
}

/** Such as `containerd://2.2.6`; empty before the kubelet has reported it. */
export function runtimeOf(node: LiveObject): string {
  return v.parse(nodeSchema, node).status.nodeInfo?.containerRuntimeVersion ?? '';
}

/** No new pods, and everyone sees why: in one write, so that a cordon without its reason is never ours. */
export async function markLeaving(call: Call, name: string, now: Date): Promise<void> {
  const annotations = { [LEAVING]: now.toISOString() };
  await mergeObject(call, NODES, { name }, { metadata: { annotations }, spec: { unschedulable: true } });
}

/** The same for an upgrade to a version. A kubelet may change its own Node, too. */
export async function markUpgrading(call: Call, name: string, version: string): Promise<void> {
  const metadata = { annotations: { [CORDON]: version } };
  await mergeObject(call, NODES, { name }, { metadata, spec: { unschedulable: true } });
}

/** No new pods until a person allows them again: curlew does not lift it, nor what was its own cordon before. */
export async function cordonNode(call: Call, name: string): Promise<void> {
  const metadata = { annotations: { [CORDON]: null } };
  await mergeObject(call, NODES, { name }, { metadata, spec: { unschedulable: true } });
}

/** Lifts a cordon, with the marks of {@link markUpgrading} and {@link markLeaving}. */
export async function uncordonNode(call: Call, name: string): Promise<void> {
  const metadata = { annotations: { [CORDON]: null, [LEAVING]: null } };
  await mergeObject(call, NODES, { name }, { metadata, spec: { unschedulable: false } });
}
