/** Documents of Open Cluster Management that no add-on uses. Pure. */
import { fieldsOf } from '../../core/json.ts';
import { layersOf, type Addon, type OnCluster } from './cluster-management-addon.ts';
import { isTemplate, keyOf, referencesOf } from './config-references.ts';
import type { OcmKind } from './foreign-kinds.ts';
import { isBuiltIn, PLACEMENT_LABEL } from './placement.ts';

/** Kinds of what an add-on may use. */
type Used = Exclude<OcmKind, 'ClusterManagementAddOn' | 'ManagedCluster'>;

/** Documents that these add-ons do not use, nor what is written about them for a cluster. */
export function unusedIn<One extends { readonly kind: string; readonly value: unknown }>(
  documents: readonly One[],
  addons: readonly { readonly value: Addon }[],
  onClusters: readonly OnCluster[],
): readonly One[] {
  const names = new Set(addons.map(({ value }) => value.metadata.name));
  const layers = addons.map(({ value }) => layersOf(value.spec));
  const placed = layers.flatMap(({ placements }) => placements);
  const placements = new Set(placed.map(keyOf));
  const namespaces = new Set(placed.map(({ namespace }) => namespace));
  const own = onClusters.filter(({ value }) => names.has(value.metadata.name));
  const references = [
    ...layers.flatMap(({ base }) => base),
    ...placed.flatMap(({ layer }) => layer),
    ...own.flatMap(({ value }) => referencesOf(value.spec.configs ?? [])),
  ];
  const templates = new Set(references.filter(isTemplate).map(({ name }) => name));
  const configs = new Set(references.filter((one) => !isTemplate(one)).map(keyOf));
  const sets = documents.flatMap(({ kind, value }) => {
    const { namespace, spec } = partsOf(value);
    return kind === 'ManagedClusterSetBinding' && namespaces.has(namespace) ? [spec['clusterSet']] : [];
  });
  const bound: ReadonlySet<unknown> = new Set(sets);
  const isUsed: Readonly<Record<Used, (parts: ReturnType<typeof partsOf>) => boolean>> = {
    ManagedClusterAddOn: ({ name }) => names.has(name),
    AddOnTemplate: ({ name }) => templates.has(name),
    AddOnDeploymentConfig: (one) => configs.has(keyOf(one)),
    Placement: (one) => placements.has(keyOf(one)),
    PlacementDecision: ({ namespace, placement }) => placements.has(keyOf({ namespace, name: placement })),
    ManagedClusterSetBinding: ({ namespace }) => namespaces.has(namespace),
    ManagedClusterSet: ({ name }) => bound.has(name) || isBuiltIn(name),
  };
  const rules: ReadonlyMap<string, (typeof isUsed)[Used]> = new Map(Object.entries(isUsed));
  return documents.filter(({ kind, value }) => rules.get(kind)?.(partsOf(value)) === false);
}

function partsOf(value: unknown) {
  const { metadata, spec } = fieldsOf(value);
  const { name, namespace = 'default', labels } = fieldsOf(metadata);
  const { [PLACEMENT_LABEL]: placement } = fieldsOf(labels);
  return { name: String(name), namespace: String(namespace), placement: String(placement), spec: fieldsOf(spec) };
}
