/** Takes a node out of its cluster, from one of its control planes. */
import { hostname } from 'node:os';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd } from '../cluster/kube/etcd.ts';
import { clusterInfo, ownAddresses, requireOwnCluster } from '../machine/run/cluster-info.ts';
import { DRAIN_MS } from '../machine/run/drain.ts';
import { addressesOf, openNodeApi } from '../machine/run/nodes.ts';
import { removeFrom, type NodeRemoval } from '../machine/run/removal.ts';
import { NODE_REMOVE } from '../requests/node.ts';

/**
 * Continues what an attempt before it has begun. `NOT_FOUND` for an unknown node, `USAGE` for the machine that it runs on, `CLUSTER_FAILED` where the cluster would lose its
 * last control plane or etcd its quorum, and if the node is not drained in time.
 */
export const removeNode = useCase(NODE_REMOVE, async (request, context): Promise<NodeRemoval> => {
  const { node, yes = false, drainTimeout: limitMs = DRAIN_MS } = request;
  if (node === hostname().toLowerCase()) throw isOwn(node);
  const cluster = await openNodeApi(context);
  const own = ownAddresses();
  if ((await addressesOf(cluster.call, node)).some((address) => own.has(address))) throw isOwn(node);
  using etcd = await openEtcd({ signal: context.signal });
  const doing = `remove ${node}`;
  if (etcd !== undefined && context.env['KUBECONFIG'] !== undefined) {
    await requireOwnCluster((await clusterInfo(cluster.call, doing)).hash, doing);
  }
  return await removeFrom({ ...cluster, etcd }, node, { yes, limitMs }, context);
});

function isOwn(node: string): CurlewError {
  return new CurlewError('USAGE', `cannot remove ${node}: it is this machine`, {
    hint: 'run it on another control plane; curlew reset removes the last one',
  });
}
