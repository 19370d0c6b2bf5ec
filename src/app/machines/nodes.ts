/** The nodes of the cluster that this machine is a control plane of, as the planner of machines sees them. */
import * as v from 'valibot';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { openApi, type KubeApi } from '../../kube/api.ts';
import { openCalls, type Call } from '../../kube/call.ts';
import { getObject, listObjects, mergeObject, type LiveObject } from '../../kube/objects.ts';
import type { Resource } from '../../kube/resources.ts';
import type { SeenMachine } from '../../machine/cluster.ts';

export const NODES: Resource = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
/** The mark of a node that is being removed, with the time of its first attempt. */
const LEAVING = 'curlew.dev/leaving';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const PATIENCE_MS = 60_000;

export interface NodeApi {
  readonly api: KubeApi;
  readonly call: Call;
}

/** `CLUSTER_FAILED` where no kubeconfig leads to a cluster: that of KUBECONFIG, or else kubeadm's. */
export async function openNodeApi({ env, signal, report }: Context): Promise<NodeApi> {
  const api = await openApi({ env });
  if (api === undefined) {
    throw new CurlewError('CLUSTER_FAILED', 'cannot find the cluster: this machine has no /etc/kubernetes/admin.conf', {
      hint: 'run it on a control plane, or set KUBECONFIG to the kubeconfig of an administrator',
    });
  }
  const onSlow = (text: string): void => report({ type: 'note', level: 'info', text });
  return { api, call: openCalls(api, { patienceMs: PATIENCE_MS, signal, onSlow }) };
}

const nodeSchema = v.object({
  spec: v.optional(v.object({ unschedulable: v.optional(v.boolean(), false) }), {}),
  status: v.optional(
    v.object({
      conditions: v.optional(v.array(v.object({ type: v.string(), status: v.string() })), []),
      addresses: v.optional(v.array(v.object({ type: v.string(), address: v.string() })), []),
      nodeInfo: v.optional(v.object({ kubeletVersion: v.optional(v.string(), '') }), {}),
    }),
    {},
  ),
});

/** The Nodes of the cluster. One whose kubelet has stopped reporting does not answer. */
export async function seenNodes(call: Call): Promise<readonly SeenMachine[]> {
  return ((await listObjects(call, NODES)) ?? []).map(seenNode);
}

/** Where a Node is reached within the cluster; none if it does not exist. */
export async function addressesOf(call: Call, name: string): Promise<readonly string[]> {
  const node = await getObject(call, NODES, { name });
  const { status } = v.parse(nodeSchema, node ?? {});
  return (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
}

export function seenNode(node: LiveObject): SeenMachine {
  const { name, labels, annotations } = node.metadata;
  const { spec, status } = v.parse(nodeSchema, node);
  const version = status.nodeInfo?.kubeletVersion ?? '';
  const ready = status.conditions?.find(({ type }) => type === 'Ready')?.status;
  const isControlPlane = Object.hasOwn(labels, CONTROL_PLANE);
  const isLeaving = Object.hasOwn(annotations, LEAVING);
  return {
    name,
    answers: ready !== undefined && ready !== 'Unknown',
    joined: true,
    ready: ready === 'True',
    role: isControlPlane ? 'control-plane' : 'worker',
    kubelet: version,
    ...(isControlPlane && { apiServer: version }),
    cordon: spec.unschedulable ? (isLeaving ? 'curlew' : 'other') : undefined,
    // Opened again by a person, it takes new pods: the mark counts no more.
    leaving: isLeaving && spec.unschedulable,
  };
}

/** No new pods, and everyone sees why: in one write, so that a cordon without its reason is never ours. */
export async function markLeaving(call: Call, name: string, now: Date): Promise<void> {
  const annotations = { [LEAVING]: now.toISOString() };
  await mergeObject(call, NODES, { name }, { metadata: { annotations }, spec: { unschedulable: true } });
}
