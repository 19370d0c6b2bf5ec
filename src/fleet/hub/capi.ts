/** Clusters of Cluster API in a hub: what the controller makes from each, and what templates see of it. Pure. */
import { convert } from '../../core/schema.ts';
import { CAPI_CLUSTER, fromCapiCluster, KUBECONFIG_SUFFIX, rootsOf } from '../upstream/capi-cluster.ts';
import type { Values } from '../rollout/fleet.ts';
import { FROM, type HubCluster, type Live, type Made } from './observe.ts';

/** Label of the clusters of a namespace: a HelmChartProxy selects only those next to it. */
export const NAMESPACE_LABEL = 'fleet.curlew.dev/namespace';
/** Groups of Cluster API's providers. Who may write a Cluster may not read objects of others, such as Secrets, by it. */
const PROVIDERS: readonly string[] = ['controlplane.cluster.x-k8s.io', 'infrastructure.cluster.x-k8s.io'];

/** An object of a provider that a Cluster refers to, always next to it; by `apiGroup` since v1beta2. */
export interface RootReference {
  readonly root: string;
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface CapiCluster {
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** Name and namespace, as an annotation has them. */
  readonly from: string;
  /** The Cluster of the fleet, or why there is none. */
  readonly made: Made | string;
  readonly object: Values;
  readonly references: readonly RootReference[];
}

/** A Cluster that is being deleted is left alone: nothing begins on it. */
export function readCapiCluster(object: Live): CapiCluster {
  const { apiVersion, kind, spec, status, metadata } = object;
  const { name, namespace = '', labels, annotations, deletionTimestamp, resourceVersion } = metadata;
  const from = `Cluster ${namespace}/${name}`;
  const shown = { apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec, status };
  const base = { namespace, name, resourceVersion, from, object: shown, references: referencesIn(spec, namespace) };
  const read = convert(CAPI_CLUSTER, object);
  if ('problems' in read) return { ...base, made: read.problems[0].message };
  const { networks, paused } = fromCapiCluster(read.value);
  const isPaused = paused === true || typeof deletionTimestamp === 'string';
  const made: Made = {
    labels: { ...labels, [NAMESPACE_LABEL]: namespace },
    annotations: { [FROM]: from },
    spec: { networks, ...(isPaused && { paused: true }) },
  };
  return { ...base, made };
}

function referencesIn(spec: unknown, namespace: string): readonly RootReference[] {
  return rootsOf(spec).flatMap(({ root, reference: { apiVersion, apiGroup, kind, name } }) => {
    const group = typeof apiGroup === 'string' ? apiGroup : String(apiVersion).replace(/\/.*/, '');
    return PROVIDERS.includes(group) ? [{ root, group, kind: String(kind), namespace, name: String(name) }] : [];
  });
}

/** A Cluster that was made from it, which the controller delivers to. */
export function joinCapi(own: HubCluster, { namespace, name, object }: CapiCluster, roots: Values): HubCluster {
  const secret = { namespace, name: `${name}${KUBECONFIG_SUFFIX}` };
  return { ...own, secret, cluster: { ...own.cluster, object, roots } };
}
