/** Definitions of kinds of other programs, whose objects may have any fields. */
import type { ApiClient } from './api-client.ts';
import { eventually } from './hub-scene.ts';

interface OtherKind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly scope?: 'Cluster';
  /** Fields of the spec that a server knows. */
  readonly spec?: object;
}

export const CAPI_KINDS: readonly OtherKind[] = [
  { group: 'addons.cluster.x-k8s.io', version: 'v1alpha1', plural: 'helmchartproxies', kind: 'HelmChartProxy' },
  { group: 'cluster.x-k8s.io', version: 'v1beta1', plural: 'clusters', kind: 'Cluster' },
  {
    group: 'controlplane.cluster.x-k8s.io',
    version: 'v1beta1',
    plural: 'kubeadmcontrolplanes',
    kind: 'KubeadmControlPlane',
  },
];

export function definitionsOf(kinds: readonly OtherKind[]): readonly object[] {
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schemaOf = (properties: object): object => {
    return { type: 'object', properties: { spec: { ...any, properties }, status: any } };
  };
  return kinds.map(({ group, version, plural, kind, scope = 'Namespaced', spec = {} }) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schemaOf(spec) },
          subresources: { status: {} },
        },
      ],
    },
  }));
}

/** Until each is served. */
export async function createDefinitions(client: ApiClient, kinds: readonly OtherKind[]): Promise<void> {
  for (const one of definitionsOf(kinds))
    await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', one);
  for (const { group, version, plural } of kinds)
    await eventually(async () => (await client.get(`/apis/${group}/${version}/${plural}`)).status === 200);
}

const OCM = 'open-cluster-management.io';
export const OCM_KINDS: readonly OtherKind[] = [
  {
    group: `addon.${OCM}`,
    version: 'v1alpha1',
    plural: 'clustermanagementaddons',
    kind: 'ClusterManagementAddOn',
    scope: 'Cluster',
  },
  {
    group: `addon.${OCM}`,
    version: 'v1alpha1',
    plural: 'managedclusteraddons',
    kind: 'ManagedClusterAddOn',
    spec: { installNamespace: { type: 'string', default: 'open-cluster-management-agent-addon' } },
  },
  { group: `addon.${OCM}`, version: 'v1alpha1', plural: 'addontemplates', kind: 'AddOnTemplate', scope: 'Cluster' },
  { group: `addon.${OCM}`, version: 'v1alpha1', plural: 'addondeploymentconfigs', kind: 'AddOnDeploymentConfig' },
  { group: `cluster.${OCM}`, version: 'v1', plural: 'managedclusters', kind: 'ManagedCluster', scope: 'Cluster' },
  {
    group: `cluster.${OCM}`,
    version: 'v1beta2',
    plural: 'managedclustersets',
    kind: 'ManagedClusterSet',
    scope: 'Cluster',
  },
  {
    group: `cluster.${OCM}`,
    version: 'v1beta2',
    plural: 'managedclustersetbindings',
    kind: 'ManagedClusterSetBinding',
  },
  { group: `cluster.${OCM}`, version: 'v1beta1', plural: 'placements', kind: 'Placement' },
  { group: `cluster.${OCM}`, version: 'v1beta1', plural: 'placementdecisions', kind: 'PlacementDecision' },
];
