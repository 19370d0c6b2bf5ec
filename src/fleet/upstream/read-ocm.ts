/** Documents of Open Cluster Management in a fleet -> labels of its clusters, and add-ons. Pure. */
import { groupBy } from '../../core/group-by.ts';
import type { GenericSchema } from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { fieldsOf } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import type { Labels } from '../rollout/groups.ts';
import { compatOf, addProblems } from './document.ts';
import { FOREIGN_KINDS, type OcmKind } from './foreign-kinds.ts';
import { ADDON_DEPLOYMENT_CONFIG, ADDON_TEMPLATE, noteConfig, noteTemplate } from './addon-template.ts';
import {
  CLUSTER_MANAGEMENT_ADDON,
  fromClusterManagementAddon,
  isProgram,
  keptBy,
  MANAGED_CLUSTER_ADDON,
  type Having,
} from './cluster-management-addon.ts';
import { keyOf } from './config-references.ts';
import {
  claimsOf,
  CLUSTER_SET,
  decidedIn,
  MANAGED_CLUSTER,
  notePlacement,
  PLACEMENT,
  PLACEMENT_DECISION,
  placeAll,
  placeDecided,
  SET_BINDING,
  undecidedBecause,
  type PlaceableCluster,
} from './placement.ts';
import { unusedIn } from './unused.ts';

export interface OcmDocument<File> {
  readonly file: File;
  readonly kind: string;
  readonly value: unknown;
  readonly findings: Findings;
}

/** Says so if an object has a version that this program does not know: its fields may mean something else. */
function isKnown(kind: OcmKind, value: unknown, findings: Findings): boolean {
  const { apiVersion } = fieldsOf(value);
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

/** Kind and name as messages have them. */
function titleOf(kind: string, value: unknown): string {
  const { name, namespace } = fieldsOf(fieldsOf(value)['metadata']);
  return [kind, [namespace, name].filter((one) => typeof one === 'string').join('/')].join(' ');
}

type Converted<File, Schema extends GenericSchema> = Pick<OcmDocument<File>, 'file' | 'findings'> & {
  readonly value: Read<Schema>;
};

/** Annotation of a ManagedCluster by which Open Cluster Management replaces images of all its add-ons. */
const REGISTRIES = 'open-cluster-management.io/image-registries';
const INSTEAD = 'images are replaced by registries of an AddOnDeploymentConfig';

/** What else is known. */
interface Known {
  readonly has?: Having;
  /** The Placements that wait for the scheduler of a hub, by those that it has decided about; others are evaluated. */
  readonly undecided?: (decided: ReadonlySet<string>) => ReadonlySet<string>;
  /** They are objects of a hub. */
  readonly hasHub?: boolean;
}

/**
 * The clusters with the labels of their ManagedClusters, and the fields of add-ons, each of which is the entry `named`, and the
 * documents that none of these uses. One with a problem stays as it is.
 */
export function readOcm<File, Cluster extends { readonly name: string; readonly labels: Labels }>(
  documents: readonly OcmDocument<File>[],
  clusters: readonly Cluster[],
  { has = new Map(), undecided = () => new Set(), hasHub = false }: Known = {},
) {
  const refused = new Map<string, string>();
  const read = <Schema extends GenericSchema>(wanted: OcmKind, schema: Schema): readonly Converted<File, Schema>[] =>
    documents.flatMap(({ kind, value, ...one }) => {
      if (kind !== wanted) return [];
      const converted = isKnown(wanted, value, one.findings) ? convert(schema, value) : undefined;
      if (converted && 'value' in converted) return [{ ...one, value: converted.value }];
      if (converted) addProblems(converted.problems, one.findings);
      const { message = '' } = one.findings.diagnostics.find(({ severity }) => severity === 'error') ?? {};
      refused.set(titleOf(kind, value), message);
      return [];
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
  const [first, ...others] = managed.filter(({ value }) => Boolean(value.metadata.annotations?.[REGISTRIES]));
  const also = others.length > 0 ? `; ${others.length} more clusters have it` : '';
  first?.findings.ignored(['metadata', 'annotations', REGISTRIES], REGISTRIES, `${INSTEAD}${also}`);
  for (const { value, findings } of managed) need(value.metadata.name, ['metadata', 'name'], findings);
  const candidates = labeled.flatMap(({ name, labels }): readonly PlaceableCluster[] => {
    const own = byCluster.get(name);
    return own === undefined ? [] : [{ name, labels, claims: claimsOf(own), taints: own.spec.taints ?? [] }];
  });
  const bindings = groupBy(
    read('ManagedClusterSetBinding', SET_BINDING),
    ({ value }) => value.metadata.namespace ?? 'default',
  );
  const choice = {
    clusters: candidates,
    sets: new Map(read('ManagedClusterSet', CLUSTER_SET).map(({ value }) => [value.metadata.name, value.spec])),
    bound: new Map([...bindings].map(([key, all]) => [key, all.flatMap(({ value }) => value.spec.clusterSet ?? [])])),
  };
  const managements = read('ClusterManagementAddOn', CLUSTER_MANAGEMENT_ADDON);
  const decisions = read('PlacementDecision', PLACEMENT_DECISION);
  for (const { value, findings } of decisions)
    for (const name of decidedIn(value)) need(name, ['status', 'decisions'], findings);
  const placed = placeDecided(decisions.map(({ value }) => value));
  const waiting = undecided(new Set(placed.keys()));
  for (const { value, findings } of read('Placement', PLACEMENT)) {
    const key = keyOf(value.metadata);
    if (placed.has(key)) continue;
    if (waiting.has(key)) {
      const why = ['it has no PlacementDecision yet', undecidedBecause(value, choice)];
      const problem = why.filter((one) => one !== undefined).join(': ');
      placed.set(key, { problem, names: [], groups: [], groupSize: undefined });
      continue;
    }
    notePlacement(value, findings);
    const kept = keptBy(
      key,
      managements.map((one) => one.value),
      has,
    );
    placed.set(key, placeAll(value, { ...choice, kept }));
  }
  const templates = read('AddOnTemplate', ADDON_TEMPLATE);
  for (const { value, findings } of templates) noteTemplate(value, { findings, hasHub });
  const configs = read('AddOnDeploymentConfig', ADDON_DEPLOYMENT_CONFIG);
  for (const { value, findings } of configs) noteConfig(value, findings);
  const around = {
    refused,
    has,
    placed,
    templates: new Map(templates.map(({ value }) => [value.metadata.name, value.spec])),
    configs: new Map(configs.map(({ value }) => [keyOf(value.metadata), value.spec])),
  };
  const onClusters = read('ManagedClusterAddOn', MANAGED_CLUSTER_ADDON);
  const byAddon = groupBy(onClusters, ({ value }) => value.metadata.name);
  const isLeft = (one: (typeof managements)[number]): boolean =>
    isProgram(one.value, byAddon.get(one.value.metadata.name) ?? []);
  const left = new Set(managements.filter(isLeft).map(({ value }) => value.metadata.name));
  for (const { value, findings } of onClusters) {
    const { name, namespace = '' } = value.metadata;
    if (!left.has(name)) need(namespace, ['metadata', 'namespace'], findings);
  }
  const addons = managements.flatMap(({ value, file, findings }) => {
    const { name } = value.metadata;
    const own = byAddon.get(name) ?? [];
    if (left.has(name)) {
      const message = `${name} is left alone: it has no AddOnTemplate, so its content is a program of its own`;
      findings.add('warning', 'kind', ['kind'], message, 'describe in an AddOnTemplate what it installs');
      return [];
    }
    const compat = compatOf(value, findings);
    return fromClusterManagementAddon(value, own, { findings, around }).map((one) => ({
      ...one,
      compat,
      named: name,
      file,
      findings,
    }));
  });
  return { clusters: labeled, addons, unused: unusedIn(documents, managements, onClusters) };
}
