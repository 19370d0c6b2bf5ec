/** Definitions of kinds of other programs: specs may have any fields, and a status that curlew writes only those that are known. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
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
  /** The same of the status; any by default. */
  readonly status?: object;
}

const TEXT = { type: 'string' };
const COUNT = { type: 'integer' };
const TEXTS = { type: 'array', items: TEXT };
const mapOf = (properties: object, ...required: readonly string[]): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});
const listOf = (...fields: Parameters<typeof mapOf>): object => ({ type: 'array', items: mapOf(...fields) });

const WORD = { type: TEXT, status: TEXT, reason: TEXT, message: TEXT, lastTransitionTime: TEXT };
const CONDITIONS = listOf({ ...WORD, observedGeneration: COUNT }, ...Object.keys(WORD));
const CONFIG = mapOf({ name: TEXT, namespace: TEXT, specHash: TEXT }, 'name');
const TYPE = { group: TEXT, resource: TEXT };
const DEFAULTS = listOf({ ...TYPE, desiredConfig: CONFIG }, 'resource');
const PROGRESS = listOf(
  { ...TYPE, desiredConfig: CONFIG, lastAppliedConfig: CONFIG, lastKnownGoodConfig: CONFIG },
  'resource',
);
const SUBJECT = { user: TEXT, groups: TEXTS };
/** The fields of both versions, like all that they name differently. */
const REGISTRATION = {
  signerName: TEXT,
  subject: mapOf({ ...SUBJECT, organizationUnit: TEXTS }),
  type: { enum: ['kubeClient', 'customSigner'], ...TEXT },
  kubeClient: mapOf({ subject: mapOf(SUBJECT) }),
  customSigner: mapOf({ signerName: TEXT, subject: mapOf({ ...SUBJECT, organizationUnits: TEXTS }) }, 'signerName'),
};

export const CAPI_KINDS: readonly OtherKind[] = [
  {
    group: 'addons.cluster.x-k8s.io',
    version: 'v1alpha1',
    plural: 'helmchartproxies',
    kind: 'HelmChartProxy',
    status: {
      conditions: CONDITIONS,
      matchingClusters: listOf({ apiVersion: TEXT, kind: TEXT, name: TEXT, namespace: TEXT }),
      observedGeneration: COUNT,
    },
  },
  { group: 'cluster.x-k8s.io', version: 'v1beta1', plural: 'clusters', kind: 'Cluster' },
  {
    group: 'controlplane.cluster.x-k8s.io',
    version: 'v1beta1',
    plural: 'kubeadmcontrolplanes',
    kind: 'KubeadmControlPlane',
  },
];

/** A folder with definitions of their own projects, as YAML: tests take those of it instead. */
const { CURLEW_DEFINITIONS: FOLDER } = process.env;

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly versions: readonly { readonly name: string }[] };
}

/** A definition with the one version that tests use: no webhook runs. */
function definitionFrom(folder: string, { group, version, plural }: OtherKind): object | undefined {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  const all = files.map((name) => parse(readFileSync(join(folder, name), 'utf8')) as Definition);
  const isOf = ({ metadata, spec }: Definition): boolean =>
    metadata.name === `${plural}.${group}` && spec.versions.some(({ name }) => name === version);
  const found = all.find(isOf);
  if (found === undefined) return undefined;
  const { conversion: _conversion, ...spec } = found.spec as Definition['spec'] & { readonly conversion?: object };
  const versions = spec.versions.filter(({ name }) => name === version).map((one) => ({ ...one, storage: true }));
  return { ...found, spec: { ...spec, versions } };
}

export function definitionsOf(kinds: readonly OtherKind[]): readonly object[] {
  return kinds.map((one) => (FOLDER === undefined ? undefined : definitionFrom(FOLDER, one)) ?? ownDefinition(one));
}

function ownDefinition({ group, version, plural, kind, scope, spec = {}, status }: OtherKind): object {
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const fields = { spec: { ...any, properties: spec }, status: status === undefined ? any : mapOf(status) };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: scope ?? 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: mapOf(fields) },
          subresources: { status: {} },
        },
      ],
    },
  };
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
    status: {
      defaultconfigReferences: DEFAULTS,
      defaultConfigReferences: DEFAULTS,
      installProgressions: listOf(
        { name: TEXT, namespace: TEXT, conditions: CONDITIONS, configReferences: PROGRESS },
        'name',
        'namespace',
      ),
    },
  },
  {
    group: `addon.${OCM}`,
    version: 'v1alpha1',
    plural: 'managedclusteraddons',
    kind: 'ManagedClusterAddOn',
    spec: { installNamespace: { type: 'string', default: 'open-cluster-management-agent-addon' } },
    status: {
      conditions: CONDITIONS,
      configReferences: listOf(
        {
          ...TYPE,
          name: TEXT,
          namespace: TEXT,
          lastObservedGeneration: COUNT,
          desiredConfig: CONFIG,
          lastAppliedConfig: CONFIG,
        },
        'resource',
      ),
      supportedConfigs: listOf(TYPE, 'resource'),
      registrations: listOf(REGISTRATION),
      namespace: TEXT,
    },
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
