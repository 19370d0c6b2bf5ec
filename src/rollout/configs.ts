/** Configuration in layers: the default, that of a group, and a cluster's own. Pure. */
import { isObject } from '../core/json.ts';

/** A reference of Open Cluster Management to an object with configuration. */
export interface ConfigReference {
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** By type, as `group/resource`: the first reference of a type in a layer replaces those of the layers before, others join it. */
export function mergeConfigs(
  layers: readonly (readonly ConfigReference[])[],
): Readonly<Record<string, readonly string[]>> {
  const merged = new Map<string, readonly string[]>();
  for (const layer of layers) {
    const own = new Map<string, Set<string>>();
    for (const { group, resource, namespace, name } of layer) {
      const type = `${group}/${resource}`;
      own.set(type, (own.get(type) ?? new Set()).add(`${namespace}/${name}`));
    }
    for (const [type, names] of own) merged.set(type, [...names]);
  }
  return Object.fromEntries(merged);
}

export type Values = Readonly<Record<string, unknown>>;

/** Maps are merged, other values replace those of the layers before, and null removes them, as in Helm. */
export function mergeValues(layers: readonly Values[]): Values {
  const merged = new Map<string, unknown>();
  for (const [key, value] of layers.flatMap((layer) => Object.entries(layer))) {
    const before = merged.get(key);
    if (value === null) merged.delete(key);
    else merged.set(key, isObject(value) ? mergeValues([isObject(before) ? before : {}, value]) : value);
  }
  return Object.fromEntries(merged);
}
