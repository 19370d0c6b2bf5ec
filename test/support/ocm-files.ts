/** Documents of Open Cluster Management, for tests. */

const NAMESPACE = 'fleet-ops';
const ADDON = 'addon.open-cluster-management.io';

export function placement(name: string, spec: object = {}): object {
  const apiVersion = 'cluster.open-cluster-management.io/v1beta1';
  return { apiVersion, kind: 'Placement', metadata: { name, namespace: NAMESPACE }, spec };
}

export function managedCluster(
  name: string,
  labels: object = {},
  claims: Readonly<Record<string, string>> = {},
): object {
  const clusterClaims = Object.entries(claims).map(([key, value]) => ({ name: key, value }));
  const apiVersion = 'cluster.open-cluster-management.io/v1';
  const spec = { hubAcceptsClient: true };
  return { apiVersion, kind: 'ManagedCluster', metadata: { name, labels }, spec, status: { clusterClaims } };
}

/** Lets the placements choose from a set, by default that of all clusters. */
export function binding(clusterSet = 'global'): object {
  const apiVersion = 'cluster.open-cluster-management.io/v1beta2';
  const metadata = { name: clusterSet, namespace: NAMESPACE };
  return { apiVersion, kind: 'ManagedClusterSetBinding', metadata, spec: { clusterSet } };
}

export function clusterSet(name: string, spec: object = {}): object {
  return {
    apiVersion: 'cluster.open-cluster-management.io/v1beta2',
    kind: 'ManagedClusterSet',
    metadata: { name },
    spec,
  };
}

/** Names of clusters as a hub has chosen them, in one of its groups. */
export function decision(of: string, names: readonly string[], [index, group]: readonly [number, string]): object {
  const prefix = 'cluster.open-cluster-management.io';
  const labels = {
    [`${prefix}/placement`]: of,
    [`${prefix}/decision-group-index`]: String(index),
    [`${prefix}/decision-group-name`]: group,
  };
  const metadata = { name: `${of}-decision-${index}`, namespace: NAMESPACE, labels };
  const status = { decisions: names.map((clusterName) => ({ clusterName, reason: '' })) };
  return { apiVersion: `${prefix}/v1beta1`, kind: 'PlacementDecision', metadata, status };
}

interface Reference {
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
}

/** The AddOnTemplate `name`, or the AddOnDeploymentConfig, as a reference. */
export function templateOf(name: string): Reference {
  return { group: ADDON, resource: 'addontemplates', name };
}
export function configOf(name: string): Reference {
  return { group: ADDON, resource: 'addondeploymentconfigs', namespace: NAMESPACE, name };
}

export function addOnTemplate(
  name: string,
  manifests: readonly object[],
  spec: object = {},
  agentSpec: object = {},
): object {
  const metadata = { name };
  const own = { addonName: 'web', agentSpec: { workload: { manifests }, ...agentSpec }, ...spec };
  return { apiVersion: `${ADDON}/v1alpha1`, kind: 'AddOnTemplate', metadata, spec: own };
}

export function deploymentConfig(name: string, spec: object): object {
  const metadata = { name, namespace: NAMESPACE };
  return { apiVersion: `${ADDON}/v1alpha1`, kind: 'AddOnDeploymentConfig', metadata, spec };
}

/** The add-on `web` with the template `web-1`; each placement with the fields besides its name. */
export function managementAddOn(
  placements: Readonly<Record<string, object>>,
  spec: object = {},
  annotations: object = {},
): object {
  const all = Object.entries(placements).map(([name, more]) => ({ namespace: NAMESPACE, name, ...more }));
  const own = {
    defaultConfigs: [templateOf('web-1')],
    installStrategy: { type: 'Placements', placements: all },
    ...spec,
  };
  return {
    apiVersion: `${ADDON}/v1beta1`,
    kind: 'ClusterManagementAddOn',
    metadata: { name: 'web', annotations },
    spec: own,
  };
}

/** A ClusterManagementAddOn as servers store it: each default is part of a supported configuration. */
export function stored(addon: object): object {
  const { spec, ...others } = addon as { readonly spec: { readonly defaultConfigs?: readonly Reference[] } };
  const { defaultConfigs, ...own } = spec;
  const supportedConfigs = defaultConfigs?.map(({ group, resource, ...defaultConfig }) => {
    return { group, resource, defaultConfig };
  });
  return {
    ...others,
    apiVersion: `${ADDON}/v1alpha1`,
    spec: { ...own, ...(supportedConfigs && { supportedConfigs }) },
  };
}

export function onCluster(cluster: string, spec: object = {}, annotations: object = {}): object {
  const metadata = { name: 'web', namespace: cluster, annotations };
  return { apiVersion: `${ADDON}/v1alpha1`, kind: 'ManagedClusterAddOn', metadata, spec };
}
