/** Objects of other programs that a controller takes, as far as they are alike. Pure. */
import { fits } from '../core/schema.ts';
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
  /** The version in which it is requested if the server has that, too; default: the one that the server prefers. */
  readonly version?: string;
}

/** Objects are stored in it: in another version, a server without the webhook of Open Cluster Management shows less of them. */
const version = 'v1alpha1';
/** By the name of a resource, as `--reconcile` has it: all kinds that are read for it. */
export const UPSTREAM = {
  helmchartproxies: [
    { kind: 'HelmChartProxy', plural: 'helmchartproxies', group: 'addons.cluster.x-k8s.io', isTaken: true },
    { kind: 'Cluster', plural: 'clusters', group: 'cluster.x-k8s.io', isTaken: false },
  ],
  clustermanagementaddons: [
    { kind: 'ClusterManagementAddOn', plural: 'clustermanagementaddons', group: ADDON, version, isTaken: true },
    { kind: 'ManagedClusterAddOn', plural: 'managedclusteraddons', group: ADDON, version, isTaken: true },
    { kind: 'AddOnTemplate', plural: 'addontemplates', group: ADDON, version, isTaken: false },
    { kind: 'AddOnDeploymentConfig', plural: 'addondeploymentconfigs', group: ADDON, version, isTaken: false },
    { kind: 'ManagedCluster', plural: 'managedclusters', group: CLUSTER, isTaken: false },
    { kind: 'Placement', plural: 'placements', group: CLUSTER, isTaken: false },
    { kind: 'PlacementDecision', plural: 'placementdecisions', group: CLUSTER, isTaken: false },
  ],
} as const satisfies Readonly<Record<string, readonly UpstreamKind[]>>;
export type Upstreams = keyof typeof UPSTREAM;

export interface Taken {
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

export function readTaken(kind: string, object: Live): Taken {
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
