/** Nodes that a change concerns. */
import { listObjects, mergeObject, type LiveObject } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';
import type { Addon } from './addon.ts';
import type { ChannelCluster } from './cluster.ts';

/** Marks the nodes that must be replaced after a change, for whoever rolls them, as kops does. Returns their names. */
export async function markNodes(
  { call }: Pick<ChannelCluster, 'call'>,
  role: Addon['needsRollingUpdate'],
): Promise<readonly string[]> {
  if (role === undefined) return [];
  const nodes = (await listObjects(call, NODES, { onlyMetadata: true })) ?? [];
  const isControl = ({ metadata: { labels } }: LiveObject): boolean =>
    CONTROL_LABELS.some((label) => labels[label] !== undefined);
  const chosen = role === 'all' ? nodes : nodes.filter((node) => isControl(node) === (role === 'control-plane'));
  const change = { metadata: { annotations: { 'kops.k8s.io/needs-update': '' } } };
  for (const { metadata } of chosen) await mergeObject(call, NODES, { name: metadata.name }, change);
  return chosen.map(({ metadata }) => metadata.name);
}

const NODES: Resource = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
/** Since Kubernetes 1.20, and before. */
const CONTROL_LABELS = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];
