/** The kinds of other programs that are read: how a server names them, and in which versions they can be read. Pure. */

const ADDON_GROUP = 'addon.open-cluster-management.io';
const CLUSTER_GROUP = 'cluster.open-cluster-management.io';
/** Objects are stored in the first one: in another, a server without the webhook of Open Cluster Management shows less of them. */
const ADDON = { group: ADDON_GROUP, versions: ['v1alpha1', 'v1beta1'] } as const;
const SET = { group: CLUSTER_GROUP, versions: ['v1beta2', 'v1beta1'] } as const;
const PLACEMENT = { group: CLUSTER_GROUP, versions: ['v1beta1', 'v1alpha1'] } as const;

export interface ForeignKind {
  readonly kind: string;
  readonly plural: string;
  readonly group: string;
  /** A finalizer and a status are written. */
  readonly isTaken: boolean;
  /** The first one that the server has is requested; default: the one that it prefers. */
  readonly versions?: readonly string[];
}

/** By the name of a resource, as `--reconcile` has it: all kinds that are read for it. */
export const FOREIGN_KINDS = {
  helmchartproxies: [
    { kind: 'HelmChartProxy', plural: 'helmchartproxies', group: 'addons.cluster.x-k8s.io', isTaken: true },
    { kind: 'Cluster', plural: 'clusters', group: 'cluster.x-k8s.io', isTaken: false },
  ],
  clustermanagementaddons: [
    { kind: 'ClusterManagementAddOn', plural: 'clustermanagementaddons', ...ADDON, isTaken: true },
    { kind: 'ManagedClusterAddOn', plural: 'managedclusteraddons', ...ADDON, isTaken: true },
    { kind: 'AddOnTemplate', plural: 'addontemplates', ...ADDON, isTaken: false },
    { kind: 'AddOnDeploymentConfig', plural: 'addondeploymentconfigs', ...ADDON, isTaken: false },
    { kind: 'ManagedCluster', plural: 'managedclusters', group: CLUSTER_GROUP, versions: ['v1'], isTaken: false },
    { kind: 'ManagedClusterSet', plural: 'managedclustersets', ...SET, isTaken: false },
    { kind: 'ManagedClusterSetBinding', plural: 'managedclustersetbindings', ...SET, isTaken: false },
    { kind: 'Placement', plural: 'placements', ...PLACEMENT, isTaken: false },
    { kind: 'PlacementDecision', plural: 'placementdecisions', ...PLACEMENT, isTaken: false },
  ],
} as const satisfies Readonly<Record<string, readonly ForeignKind[]>>;
export type Reconciled = keyof typeof FOREIGN_KINDS;
export type OcmKind = (typeof FOREIGN_KINDS.clustermanagementaddons)[number]['kind'];

export function isOcmKind(kind: string): kind is OcmKind {
  return FOREIGN_KINDS.clustermanagementaddons.some((one) => one.kind === kind);
}
