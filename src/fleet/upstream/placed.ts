/** Which clusters get an add-on, and with which configuration, by the rules of Open Cluster Management. Pure. */

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

/** Which clusters get an add-on and which lose it: those of all placements, or none if people install it. */
export function installDiff(
  placements: readonly (readonly string[])[] | undefined,
  existing: readonly string[],
): { readonly create: readonly string[]; readonly delete: readonly string[] } {
  if (placements === undefined) return { create: [], delete: [] };
  const [wanted, present] = [new Set(placements.flat()), new Set(existing)];
  return {
    create: [...wanted].filter((name) => !present.has(name)),
    delete: [...present].filter((name) => !wanted.has(name)),
  };
}

/** The clusters of each placement that no later one has: a cluster gets configuration and strategy from its last one. */
export function withoutLater(placements: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return placements.map((names, at) => {
    const later = new Set(placements.slice(at + 1).flat());
    return names.filter((name) => !later.has(name));
  });
}
