/** ClusterManagementAddOn and ManagedClusterAddOn of Open Cluster Management -> the fields of FleetAddons. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { aMap, aText, convert, fields, type Read } from '../../core/schema.ts';
import {
  isTemplate,
  keyOf,
  layerOf,
  NO_DEFAULT,
  REFERENCE,
  referencesOf,
  TYPE_WITH_DEFAULT,
  type Configurations,
  type Located,
} from './config-references.ts';
import { fleetAddonName, anyOf, foreign, list, optionalText } from './kinds.ts';
import { installDiff, withoutLater } from './placed.ts';
import type { Placed } from './placement.ts';
import { fromRolloutStrategy, ROLLOUT_STRATEGY } from './rollout-strategy.ts';
import type { TemplateValues } from './template-objects.ts';

const references = v.exactOptional(list(REFERENCE));
const placement = fields({
  namespace: optionalText,
  name: aText,
  configs: references,
  rolloutStrategy: v.exactOptional(ROLLOUT_STRATEGY),
});

export const CLUSTER_MANAGEMENT_ADDON = foreign(fleetAddonName, {
  ...v.entriesFromList(['addOnMeta', 'addOnConfiguration'], v.exactOptional(aMap)),
  supportedConfigs: v.exactOptional(list(TYPE_WITH_DEFAULT)),
  defaultConfigs: references,
  installStrategy: v.exactOptional(
    fields({
      type: v.exactOptional(v.picklist(['Manual', 'Placements'], 'Manual or Placements')),
      placements: v.exactOptional(list(placement)),
    }),
  ),
});
export type Addon = Read<typeof CLUSTER_MANAGEMENT_ADDON>;

/** Templates do not use the `installNamespace`, and a hub sets it in `v1alpha1` where it is not written. */
export const MANAGED_CLUSTER_ADDON = foreign(fleetAddonName, { installNamespace: optionalText, configs: references });

/** A ManagedClusterAddOn, whose namespace is the name of its cluster. */
export interface OnCluster {
  readonly value: Read<typeof MANAGED_CLUSTER_ADDON>;
  readonly findings: Findings;
}

/** What the other documents of a folder have; placements by `NAMESPACE/NAME`. */
export interface Around extends Configurations {
  readonly placed: ReadonlyMap<string, Placed>;
  /** Clusters that have an add-on, by the name of what it becomes. */
  readonly has: Having;
}
export type Having = ReadonlyMap<string, ReadonlySet<string>>;

/** Clusters with the same configuration and strategy. */
interface Part {
  readonly title: string;
  /** Why it stays as it is. */
  readonly problem?: string;
  readonly names: readonly string[];
  readonly values: TemplateValues;
  readonly rollout: ReturnType<typeof fromRolloutStrategy> | undefined;
}

/** True if no configuration says what it installs: its content is a program of its own, which alone reads the rest. */
export function isProgram({ spec }: Pick<Addon, 'spec'>, onClusters: readonly OnCluster[]): boolean {
  const { type, placements = [] } = spec.installStrategy ?? {};
  const placed = type === 'Placements' ? placements : [];
  const own = [...placed, ...onClusters.map(({ value }) => value.spec)].flatMap(({ configs = [] }) => configs);
  return ![...defaultsOf(spec).map(({ reference }) => reference), ...own].some(isTemplate);
}

/** One for each placement, of which the first has the name of the add-on. */
export function fromClusterManagementAddon(
  { metadata: { name }, spec }: Addon,
  onClusters: readonly OnCluster[],
  { findings, around }: { readonly findings: Findings; readonly around: Around },
) {
  const { supportedConfigs: supported = [], addOnConfiguration } = spec;
  const field = 'addOnConfiguration';
  const instead = 'supportedConfigs and defaultConfigs name configurations';
  if (addOnConfiguration !== undefined) findings.ignored(['spec', field], field, instead);
  const base = layerOf(defaultsOf(spec), around, { supported, findings });
  const layersOn = onClusters.map(({ value, findings: at }) => {
    const { namespace: cluster = '' } = value.metadata;
    const configs = locate(value.spec.configs ?? [], ['spec', 'configs']);
    return { names: [cluster], values: layerOf(configs, around, { supported, findings: at }) };
  });
  const parts = partsOf(
    { name, spec, findings },
    layersOn.flatMap(({ names }) => names),
    around,
  );
  const isPlaced = spec.installStrategy?.type === 'Placements';
  const existing = onClusters.map(({ value }) => value.metadata.namespace ?? '');
  // It is not known where one that stays as it is belongs.
  const isDecided = isPlaced && parts.every(({ problem }) => problem === undefined);
  const unplaced = new Set(installDiff(isDecided ? parts.map(({ names }) => names) : undefined, existing).delete);
  for (const one of onClusters) noteOnCluster(one, unplaced);
  const last = withoutLater(parts.map(({ names }) => names));
  return parts.map(({ title, problem, values, rollout }, at) => {
    const mine = last[at] ?? [];
    const groups = [{ names: mine, values }, ...layersOn].flatMap((one) => {
      return Object.keys(one.values).length === 0 ? [] : [{ selector: anyOf(one.names), values: { ...one.values } }];
    });
    const config = { default: { ...base }, groups };
    const own = { source: {}, clusterSelector: anyOf(mine), config, ...(rollout && { rollout }) };
    return { name: title, problem, spec: own };
  });
}

/** What it refers to on each cluster. */
function defaultsOf({ supportedConfigs = [], defaultConfigs = [] }: Addon['spec']): readonly Located[] {
  const defaults = supportedConfigs.flatMap(({ defaultConfig, ...type }, at): readonly Located[] => {
    const path = ['spec', 'supportedConfigs', at, 'defaultConfig'];
    return defaultConfig === undefined ? [] : [{ reference: { ...type, ...defaultConfig }, path }];
  });
  const named = locate(defaultConfigs, ['spec', 'defaultConfigs']);
  return [...defaults, ...named.filter(({ reference }) => reference.name !== NO_DEFAULT)];
}

/** What a ClusterManagementAddOn refers to, and its placements, or a ManagedClusterAddOn; nothing if it cannot be read. */
export function layersIn(kind: string, value: unknown): ReturnType<typeof layersOf> {
  const managed = kind === 'ManagedClusterAddOn' ? convert(MANAGED_CLUSTER_ADDON, value) : undefined;
  if (managed && 'value' in managed) return { base: referencesOf(managed.value.spec.configs ?? []), placements: [] };
  const read = kind === 'ClusterManagementAddOn' ? convert(CLUSTER_MANAGEMENT_ADDON, value) : undefined;
  return layersOf(read && 'value' in read ? read.value.spec : {});
}

/** What a ClusterManagementAddOn refers to, and its placements. */
export function layersOf(spec: Addon['spec']) {
  const { type, placements = [] } = spec.installStrategy ?? {};
  return {
    base: referencesOf(defaultsOf(spec).map(({ reference }) => reference)),
    placements: (type === 'Placements' ? placements : []).map(({ name, namespace = 'default', configs = [] }) => {
      return { name, namespace, layer: referencesOf(configs) };
    }),
  };
}

function locate(refs: readonly Located['reference'][], path: Located['path']): readonly Located[] {
  return refs.map((reference, at) => ({ reference, path: [...path, at] }));
}

/** Its placements, or the clusters on which people install it. */
function partsOf(
  { name, spec, findings }: { readonly name: string; readonly spec: Addon['spec']; readonly findings: Findings },
  installed: readonly string[],
  around: Around,
): readonly Part[] {
  const { supportedConfigs: supported = [], installStrategy: { type = 'Manual', placements = [] } = {} } = spec;
  if (type === 'Manual') return [{ title: name, names: installed, values: {}, rollout: undefined }];
  const titles = new Set<string>();
  return placements.map((one, at) => {
    const path = ['spec', 'installStrategy', 'placements', at];
    const key = keyOf(one);
    const { problem: why, ...placed } = around.placed.get(key) ?? MISSING;
    const problem =
      why === undefined ? undefined : around.placed.has(key) ? `Placement ${key}: ${why}` : `${why} ${key}`;
    const title = titleOf(name, one.name, at);
    if (problem !== undefined)
      findings.add('warning', 'placement', [...path, 'name'], `${title} stays as it is: ${problem}`);
    const wrong = titles.has(title)
      ? 'two placements become the add-on'
      : v.is(fleetAddonName, title)
        ? ''
        : 'no add-on can be named';
    if (wrong !== '')
      findings.error('placement', [...path, 'name'], `${wrong} ${title}`, 'give the Placement another name');
    titles.add(title);
    const values = layerOf(locate(one.configs ?? [], [...path, 'configs']), around, { supported, findings });
    const rollout = fromRolloutStrategy(one.rolloutStrategy ?? {}, placed, [...path, 'rolloutStrategy'], findings);
    const names = problem === undefined ? placed.names : [...(around.has.get(title) ?? [])];
    return { title, ...(problem !== undefined && { problem }), names, values, rollout };
  });
}

const MISSING: Placed = { problem: 'there is no Placement', names: [], groups: [], groupSize: undefined };

/** What an add-on becomes for the placement at this place of its list. */
function titleOf(addon: string, placementName: string, at: number): string {
  return at === 0 ? addon : `${addon}-${placementName}`;
}

/** The clusters that have one of these add-ons by a placement. */
export function keptBy(key: string, addons: readonly Addon[], has: Having): ReadonlySet<string> {
  const names = addons.flatMap(({ metadata, spec: { installStrategy: { placements = [] } = {} } }) =>
    placements.flatMap((one, at) =>
      keyOf(one) === key ? [...(has.get(titleOf(metadata.name, one.name, at)) ?? [])] : [],
    ),
  );
  return new Set(names);
}

const HOSTED = 'addon.open-cluster-management.io/hosting-cluster-name';

function noteOnCluster({ value, findings }: OnCluster, unplaced: ReadonlySet<string>): void {
  const { namespace = '', annotations = {} } = value.metadata;
  const why = 'an add-on runs on the cluster that it is for';
  if (HOSTED in annotations) findings.ignored(['metadata', 'annotations', HOSTED], HOSTED, why);
  if (!unplaced.has(namespace)) return;
  const message = `no placement of ${value.metadata.name} selects ${namespace}: it does not run there`;
  findings.add('warning', 'placement', ['metadata', 'namespace'], message);
}
