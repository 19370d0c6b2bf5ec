/** How one node goes to the Kubernetes of a bundle. Pure. */
import type { Role, SeenMachine } from './cluster.ts';
import { byVersion } from './refusals.ts';
import { skewsOf, skippedMinor, requireVersion } from './versions.ts';

export interface NodeVersions {
  readonly kubelet: string;
  /** Version of the cluster, as its first control plane has brought it to. */
  readonly cluster: string;
  readonly wanted: string;
  /** The run brings the cluster itself to the version, on its first control plane. */
  readonly leads: boolean;
  /** The other nodes; none where they cannot be listed. */
  readonly others: readonly SeenMachine[];
}

/** Why it may not; undefined if it may, or already is there. */
export function whyNotUpgrade({ kubelet, cluster, wanted, leads, others }: NodeVersions): string | undefined {
  const highest = byVersion(kubelet, cluster) > 0 ? kubelet : cluster;
  if (byVersion(wanted, highest) < 0) return `the cluster has ${highest}, and kubeadm cannot return to ${wanted}`;
  if (!leads && byVersion(wanted, cluster) > 0) {
    return `the cluster has ${cluster}: its first control plane goes to ${wanted} before other nodes do`;
  }
  const skipped = skippedMinor(cluster, wanted);
  if (skipped !== undefined) return skipped;
  const { minor } = requireVersion(cluster);
  for (const { name, role, kubelet: other = cluster } of leads ? others : []) {
    if (byVersion(wanted, cluster) > 0 && role === 'control-plane' && requireVersion(other).minor !== minor) {
      return `the control plane ${name} has ${other}: upgrade it to ${cluster} first`;
    }
    if (skewsOf(wanted, other, { kubeadm: false }).length > 0) {
      return `the kubelet ${other} of ${name} does not work with the API server ${wanted}: upgrade it to ${cluster} first`;
    }
  }
  return undefined;
}

/** Control planes one after the other, then all workers together; those that have the version already need no turn. */
export function upgradeOrder<M extends { readonly role: Role; readonly version: string }>(
  machines: readonly M[],
  version: string,
): readonly (readonly M[])[] {
  const outdated = machines.filter((one) => one.version !== version);
  const workers = outdated.filter(({ role }) => role === 'worker');
  const turns = outdated.filter(({ role }) => role !== 'worker').map((one) => [one]);
  return workers.length === 0 ? turns : [...turns, workers];
}

/** The nodes that are left, in their turns: each control plane alone, then the workers. */
export function nextNodes({ wanted, others }: Pick<NodeVersions, 'wanted' | 'others'>): readonly string[] {
  const known = others.map(({ name, role = 'worker', kubelet = '' }) => ({ name, role, version: kubelet }));
  return (upgradeOrder(known, wanted)[0] ?? []).map(({ name }) => name);
}
