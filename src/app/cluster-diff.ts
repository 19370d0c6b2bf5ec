/** The differences between two clusters that are described in files. */
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import type { ClusterFields } from '../fleet/schema.ts';
import { clusterDiff, type ClusterDifference } from '../machine/difference.ts';
import { readCluster } from '../machine/run/cluster-file.ts';
import { CLUSTER_DIFF } from '../requests/cluster.ts';

export interface ClusterDiff {
  /** Names of the clusters. */
  readonly a: string;
  readonly b: string;
  readonly differences: readonly ClusterDifference[];
}

/** Where each cluster is, and how it is reached. */
const IDENTITY = [
  'access',
  ...['machines', 'machines.control-plane', 'machines.worker'].flatMap((list) => [`${list}.address`, `${list}.ssh`]),
];

/** Contacts no cluster. `SPEC_INVALID` for mistakes in a file, `USAGE` if it has no cluster, or several. */
export const diffClusters = useCase(CLUSTER_DIFF, async ({ files }, context): Promise<ClusterDiff> => {
  const [a, b, other] = files;
  if (a === undefined || b === undefined || other !== undefined) {
    throw new CurlewError('USAGE', `cannot compare ${files.length} files: a difference is between two`);
  }
  const [first, second] = await Promise.all([
    readCluster([a], 'compare', context),
    readCluster([b], 'compare', context),
  ]);
  const names = new Set(machinesOf(first).map(({ name }) => name));
  const isNamed = machinesOf(second).some(({ name }) => names.has(name));
  const differences = clusterDiff(comparable(first, isNamed), comparable(second, isNamed), IDENTITY);
  return { a: first.metadata.name, b: second.metadata.name, differences };
});

type Machines = NonNullable<ClusterFields['spec']['machines']>;

function machinesOf({ spec }: ClusterFields): Machines {
  return spec.machines ?? [];
}

/** Machines by their names if the clusters share any, otherwise by role and place. */
function comparable(cluster: ClusterFields, isNamed: boolean): Readonly<Record<string, unknown>> {
  const machines = machinesOf(cluster);
  const { labels = {} } = cluster.metadata;
  const named = isNamed ? machines : undefined;
  const placed: Record<string, unknown[]> = {};
  for (const { name: _name, role, ...machine } of machines) (placed[role] ??= []).push(machine);
  return { ...cluster.spec, labels, machines: named ?? placed };
}
