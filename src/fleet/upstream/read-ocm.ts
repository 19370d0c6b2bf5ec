/** Documents of Open Cluster Management in a fleet -> labels of its clusters, and add-ons. Pure. */
import { groupBy } from '../../core/group-by.ts';
import type { GenericSchema } from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import type { Labels } from '../rollout/groups.ts';
import { compatOf, addProblems } from './document.ts';
import { FOREIGN_KINDS, type OcmKind } from './foreign-kinds.ts';
import { ADDON_DEPLOYMENT_CONFIG, ADDON_TEMPLATE, noteConfig, noteTemplate } from './addon-template.ts';
import {
  CLUSTER_MANAGEMENT_ADDON,
  fromClusterManagementAddon,
  MANAGED_CLUSTER_ADDON,
} from './cluster-management-addon.ts';
import { keyOf } from './config-references.ts';
import {
  claimsOf,
  decidedIn,
  MANAGED_CLUSTER,
  notePlacement,
  PLACEMENT,
  PLACEMENT_DECISION,
  placeAll,
  placeDecided,
  type PlaceableCluster,
} from './placement.ts';

export interface OcmDocument<File> {
  readonly file: File;
  readonly kind: string;
  readonly value: unknown;
  readonly findings: Findings;
}

/** Says so if an object has a version that this program does not know: its fields may mean something else. */
function isKnown(kind: OcmKind, value: unknown, findings: Findings): boolean {
  const { apiVersion } = isObject(value) ? value : {};
  const known: readonly string[] =
    FOREIGN_KINDS.clustermanagementaddons.find((one) => one.kind === kind)?.versions ?? [];
  const [group = '', version = ''] = String(apiVersion).split('/');
  if (known.includes(version)) return true;
  const message = `a ${kind} of ${group}/${version} cannot be read: its version must be ${known.join(' or ')}`;
  findings.error(
    'version',
    ['apiVersion'],
    message,
    `kubectl get ${kind.toLowerCase()}s.${known[0] ?? ''}.${group} -o yaml`,
  );
  return false;
}

type Converted<File, Schema extends GenericSchema> = Pick<OcmDocument<File>, 'file' | 'findings'> & {
  readonly value: Read<Schema>;
};

/** The clusters with the labels of their ManagedClusters, and the fields of add-ons, each of which is the entry `named`. */
export function readOcm<File, Cluster extends { readonly name: string; readonly labels: Labels }>(
  documents: readonly OcmDocument<File>[],
  clusters: readonly Cluster[],
) {
  const read = <Schema extends GenericSchema>(wanted: OcmKind, schema: Schema): readonly Converted<File, Schema>[] =>
    documents.flatMap(({ kind, value, ...one }) => {
      if (kind !== wanted || !isKnown(wanted, value, one.findings)) return [];
      const converted = convert(schema, value);
      if ('problems' in converted) addProblems(converted.problems, one.findings);
      return 'problems' in converted ? [] : [{ ...one, value: converted.value }];
    });
  const managed = read('ManagedCluster', MANAGED_CLUSTER);
  const byCluster = new Map(managed.map(({ value }) => [value.metadata.name, value]));
  const labeled = clusters.map((one) => ({
    ...one,
    labels: { ...byCluster.get(one.name)?.metadata.labels, ...one.labels },
  }));
  const names = new Set(clusters.map(({ name }) => name));
  const need = (name: string, path: readonly string[], findings: Findings): void => {
    const hint = 'add a Cluster of this name, with a kubeconfig';
    if (!names.has(name)) findings.error('cluster', path, `there is no Cluster ${name} that gives access to it`, hint);
  };
  for (const { value, findings } of managed) {
    need(value.metadata.name, ['metadata', 'name'], findings);
    if (value.spec.taints !== undefined)
      findings.add('warning', 'ignored', ['spec', 'taints'], 'taints have no effect: select clusters by their labels');
  }
  const candidates = labeled.map(({ name, labels }): PlaceableCluster => {
    const own = byCluster.get(name);
    return { name, labels, claims: own === undefined ? {} : claimsOf(own) };
  });
  const decisions = read('PlacementDecision', PLACEMENT_DECISION);
  for (const { value, findings } of decisions)
    for (const name of decidedIn(value)) need(name, ['status', 'decisions'], findings);
  const placed = placeDecided(decisions.map(({ value }) => value));
  const decided: ReadonlySet<string> = new Set(placed.keys());
  for (const { value, findings } of read('Placement', PLACEMENT)) {
    const key = keyOf(value.metadata);
    if (placed.has(key)) continue;
    notePlacement(value, findings);
    placed.set(key, placeAll(value, candidates));
  }
  const templates = read('AddOnTemplate', ADDON_TEMPLATE);
  for (const { value, findings } of templates) noteTemplate(value, findings);
  const configs = read('AddOnDeploymentConfig', ADDON_DEPLOYMENT_CONFIG);
  for (const { value, findings } of configs) noteConfig(value, findings);
  const around = {
    placed,
    templates: new Map(templates.map(({ value }) => [value.metadata.name, value.spec])),
    configs: new Map(configs.map(({ value }) => [keyOf(value.metadata), value.spec])),
  };
  const onClusters = read('ManagedClusterAddOn', MANAGED_CLUSTER_ADDON);
  for (const { value, findings } of onClusters)
    need(value.metadata.namespace ?? '', ['metadata', 'namespace'], findings);
  const byAddon = groupBy(onClusters, ({ value }) => value.metadata.name);
  const addons = read('ClusterManagementAddOn', CLUSTER_MANAGEMENT_ADDON).flatMap(({ value, file, findings }) => {
    const { name } = value.metadata;
    const own = byAddon.get(name) ?? [];
    const compat = compatOf(value, findings);
    return fromClusterManagementAddon(value, own, { findings, around }).map((one) => ({
      ...one,
      compat,
      named: name,
      file,
      findings,
    }));
  });
  return { clusters: labeled, addons, decided };
}
