/** Moves the pods of a node to others, from a control plane. */
import { useCase } from '../core/request.ts';
import { getObject } from '../cluster/kube/objects.ts';
import { DRAIN_MS, drainNode, leftToDrain, requireForce } from '../machine/run/drain.ts';
import { cordonNode, openNodeApi, seenNode, seenNodes, uncordonNode } from '../machine/run/nodes.ts';
import { unknownName } from '../machine/run/require-name.ts';
import { NODE_DRAIN } from '../requests/node.ts';
import { NODES } from '../cluster/kube/core-kinds.ts';

export interface NodeDrain {
  readonly node: string;
  /** It takes no new pods until a person allows them again. */
  readonly isCordoned: boolean;
  /** Pods that are still to be evicted, or to end. */
  readonly pods: readonly string[];
  /** The losses with these pods, for which `force` is needed: `default/web: no controller creates it again`. */
  readonly lost: readonly string[];
}

/** Cordons it as a person would, also where an upgrade of curlew has cordoned it until its end. `NOT_FOUND` for an unknown node, `CLUSTER_FAILED` without `force` if something would be lost, and if its pods have not moved in time: then the cordon stays only if one has. */
export const drain = useCase(NODE_DRAIN, async (request, context): Promise<NodeDrain> => {
  const { node, yes = false, force = false, ignoreBudgets = false, drainTimeout: limitMs = DRAIN_MS } = request;
  const { report, signal } = context;
  const cluster = await openNodeApi(context);
  const look = async (): Promise<NodeDrain> => {
    const object = await getObject(cluster.call, NODES, { name: node });
    if (object === undefined) {
      const names = (await seenNodes(cluster.call)).map(({ name }) => name);
      throw unknownName(node, names, { doing: `drain ${node}`, missing: 'the cluster has no such node' });
    }
    const { toEvict, waiting, lost } = await leftToDrain(cluster, node);
    const pods = [...toEvict.map(({ name }) => name), ...waiting];
    const { cordon, cordonFor } = seenNode(object);
    isOpen = cordon === undefined;
    return { node, isCordoned: cordon !== undefined && cordonFor === undefined, pods, lost };
  };
  let isOpen = false;
  const before = await look();
  if (!yes) return before;
  requireForce(node, before, force);
  const release = isOpen ? async () => uncordonNode(cluster.call, node) : undefined;
  if (!before.isCordoned) await cordonNode(cluster.call, node);
  await drainNode(cluster, node, { limitMs, ignoreBudgets, release, report, signal });
  return look();
});
