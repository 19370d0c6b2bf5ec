/** The address of a cluster's load balancer, and whether a run changes it (kurl.md 6.6). */
import type { ShellVariable } from '../../spec/variables.ts';
import type { NodeCluster } from './cluster.ts';
import type { ClusterView } from './consult.ts';
import { isLoadBalancer } from './cluster-records.ts';
import type { LoadBalancerMove } from '../plan/run-plan.ts';

const ADDRESS = 'LOAD_BALANCER_ADDRESS';
const INTERNAL = 'EKCO_ENABLE_INTERNAL_LOAD_BALANCER';

/** The address from the variables of a spec; undefined for a cluster without a load balancer. */
export function loadBalancerOf(variables: readonly ShellVariable[]): string | undefined {
  const values = new Map(variables);
  // ekco runs one on each node, and sets the variable before kubernetes is installed.
  if ((values.get(INTERNAL) ?? '') !== '') return 'localhost';
  const address = values.get(ADDRESS) ?? '';
  return isLoadBalancer(address) ? address : undefined;
}

/** Undefined if the address stays, or one of the two is unknown. Ports are ignored. */
export async function loadBalancerMove(
  { cluster, loadBalancer }: Pick<ClusterView, 'cluster' | 'loadBalancer'>,
  variables: readonly ShellVariable[],
): Promise<LoadBalancerMove | undefined> {
  const now = loadBalancerOf(variables);
  if (now === undefined || cluster === undefined) return undefined;
  const before = loadBalancer ?? (await controlPlaneOf(cluster));
  if (before === undefined || hostOf(before) === hostOf(now)) return undefined;
  return { before, now, others: (await cluster.readNodes()).length > 1 };
}

/** The address from kubeadm's configuration, as kURL reads it, for clusters without a recorded address. */
async function controlPlaneOf(cluster: NodeCluster): Promise<string | undefined> {
  const text = await cluster.readKubeadm();
  const [, address = ''] = /^controlPlaneEndpoint:[ \t]*["']?([^\s"']+)/m.exec(text ?? '') ?? [];
  return isLoadBalancer(address) ? address : undefined;
}

function hostOf(address: string): string {
  const [, bracketed, plain] = /^\[([^\]]+)\](?::\d+)?$|^([^:]+)(?::\d+)?$/.exec(address) ?? [];
  return (bracketed ?? plain ?? address).toLowerCase();
}
