/** The Nodes and members of etcd of a cluster, as a control plane sees them. */
import { useCase } from '../core/request.ts';
import { openEtcd } from '../cluster/kube/etcd.ts';
import type { SeenMachine } from '../machine/cluster.ts';
import type { EtcdMember } from '../machine/etcd.ts';
import { nodesAndMembers, openNodeApi } from '../machine/run/nodes.ts';
import { recordedAddons, type RecordedAddon } from '../machine/run/recorded-addons.ts';
import { CLUSTER_NODES } from '../requests/cluster.ts';

export interface ClusterNodes {
  readonly machines: readonly SeenMachine[];
  /** Missing where this machine has no member of etcd. */
  readonly members?: readonly EtcdMember[];
  /** Add-ons of channels. */
  readonly addons?: readonly RecordedAddon[];
}

/** Less than operators wait for all of it, so that they get the reason: they ask again. */
const PATIENCE_MS = 10_000;

/** `CLUSTER_FAILED` if the API server or etcd does not answer. */
export const clusterNodes = useCase(CLUSTER_NODES, async (_, context): Promise<ClusterNodes> => {
  const { api, call } = await openNodeApi(context, PATIENCE_MS);
  using etcd = await openEtcd({ signal: context.signal });
  const { machines, members } = await nodesAndMembers(call, etcd);
  const addons = await recordedAddons(api, context.signal);
  return { machines, ...(members !== undefined && { members }), ...(addons.length > 0 && { addons }) };
});
