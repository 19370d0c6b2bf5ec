/** Add-ons that depend on each other. Pure. */

type DependsOn = (name: string) => readonly string[] | undefined;

/** The shortest way from an add-on over what it depends on back to itself, with its name at both ends; undefined if there is none. */
export function circleOf(start: string, dependsOn: DependsOn): readonly string[] | undefined {
  const ways = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const name of dependsOn(way.at(-1) ?? start) ?? []) {
      if (name === start) return [...way, name];
      if (!seen.has(name)) ways.push([...way, name]);
      seen.add(name);
    }
  }
  return undefined;
}
