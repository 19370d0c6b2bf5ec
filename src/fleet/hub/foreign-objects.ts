/** Objects of other programs that a controller takes, as far as they are alike. Pure. */
import { fits } from '../../core/schema.ts';
import { OCM_KINDS } from '../read-ocm.ts';
import * as v from 'valibot';
import { versionOf, type Live, type Version } from './observe.ts';
import { conditions, type Condition } from './schema.ts';

const ADDON = 'addon.open-cluster-management.io';
const CLUSTER = 'cluster.open-cluster-management.io';

/** Another kind, as a controller looks for it on a server. */
export interface UpstreamKind {
  readonly kind: string;
  readonly plural: string;
  readonly group: string;
  /** A finalizer and a status are written. */
  readonly isTaken: boolean;
  /** The versions that can be read, of which the first one that the server has is requested; default: the one that it prefers. */
  readonly versions?: readonly string[];
}

const OCM = {
  addon: { group: ADDON, versions: OCM_KINDS.ClusterManagementAddOn },
  cluster: { group: CLUSTER, versions: OCM_KINDS.ManagedCluster },
  placement: { group: CLUSTER, versions: OCM_KINDS.Placement },
} as const;
/** By the name of a resource, as `--reconcile` has it: all kinds that are read for it. */
export const UPSTREAM = {
  helmchartproxies: [
    { kind: 'HelmChartProxy', plural: 'helmchartproxies', group: 'addons.cluster.x-k8s.io', isTaken: true },
    { kind: 'Cluster', plural: 'clusters', group: 'cluster.x-k8s.io', isTaken: false },
  ],
  clustermanagementaddons: [
    { kind: 'ClusterManagementAddOn', plural: 'clustermanagementaddons', ...OCM.addon, isTaken: true },
    { kind: 'ManagedClusterAddOn', plural: 'managedclusteraddons', ...OCM.addon, isTaken: true },
    { kind: 'AddOnTemplate', plural: 'addontemplates', ...OCM.addon, isTaken: false },
    { kind: 'AddOnDeploymentConfig', plural: 'addondeploymentconfigs', ...OCM.addon, isTaken: false },
    { kind: 'ManagedCluster', plural: 'managedclusters', ...OCM.cluster, isTaken: false },
    { kind: 'Placement', plural: 'placements', ...OCM.placement, isTaken: false },
    { kind: 'PlacementDecision', plural: 'placementdecisions', ...OCM.placement, isTaken: false },
  ],
} as const satisfies Readonly<Record<string, readonly UpstreamKind[]>>;
export type Upstreams = keyof typeof UPSTREAM;

export interface ForeignObject {
  readonly at: Version;
  /** Kind, namespace and name, as an annotation has them. */
  readonly from: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly conditions: readonly Condition[];
  /** The stored status. */
  readonly status: unknown;
}

const statusSchema = v.looseObject({ conditions });

/** The conditions of a status. */
export function conditionsIn(status: unknown): readonly Condition[] {
  return fits(statusSchema, status) ? (status.conditions ?? []) : [];
}

export function readForeign(kind: string, object: Live): ForeignObject {
  const { metadata, status } = object;
  const { namespace, name, generation = 1, deletionTimestamp, finalizers } = metadata;
  return {
    at: versionOf(object),
    from: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`,
    generation,
    isDeleting: typeof deletionTimestamp === 'string',
    finalizers,
    conditions: conditionsIn(status),
    status,
  };
}
