/** Which modules of a program belong into one file: each start reads few files, and little that it does not need. */

/** Modules in one file. */
interface Group {
  readonly paths: string[];
  /** The entry points that load it. */
  readonly entries: Set<string>;
  /** Other groups that it imports. */
  readonly needs: Set<Group>;
  bytes: number;
}

export interface Modules {
  /** What is loaded by itself, at the start or later. */
  readonly entries: readonly string[];
  /** The modules that are loaded with one, itself among them. */
  readonly loadedWith: (path: string) => ReadonlySet<string>;
  /** Bytes of a module in the output. */
  readonly bytesOf: (path: string) => number;
  /** False for a module that is only loaded by those that import it. */
  readonly isOwn: (path: string) => boolean;
}

/** It takes as long to find and open a file as to compile and run so many bytes of one. */
const BYTES_OF_A_FILE = 4000;

/**
 * Puts modules with the same entry points into one group, and adds it to another one if that saves more files than it costs
 * bytes. Returns the paths of each group with the entry points that are to ask for them.
 */
export function groupModules({
  entries,
  loadedWith,
  bytesOf,
  isOwn,
}: Modules): readonly Pick<Group, 'paths' | 'entries'>[] {
  const users = new Map<string, string[]>();
  for (const entry of entries) {
    for (const path of loadedWith(entry)) users.set(path, [...(users.get(path) ?? []), entry]);
  }
  const alike = new Map<string, Group>();
  for (const [path, own] of users) {
    const group = alike.get(own.join()) ?? { paths: [], entries: new Set(own), needs: new Set(), bytes: 0 };
    group.paths.push(path);
    group.bytes += bytesOf(path);
    alike.set(own.join(), group);
  }
  const placed = new Map<string, Group>();
  const groups = new Set<Group>();
  // What a module imports has more entry points than itself, or the same ones.
  for (const one of [...alike.values()].toSorted((a, b) => b.entries.size - a.entries.size)) {
    for (const path of one.paths) {
      for (const other of loadedWith(path)) {
        const needed = placed.get(other);
        if (needed !== undefined) one.needs.add(needed);
      }
    }
    // What one entry point alone loads is in its own file.
    const isMovable = one.entries.size > 1 && one.paths.some(isOwn);
    const joined = isMovable ? bestOf(groups, one) : undefined;
    if (joined !== undefined) join(joined, one);
    else if (isMovable) groups.add(one);
    for (const path of one.paths) placed.set(path, joined ?? one);
  }
  return [...groups];
}

/** The group to which adding another one saves most; undefined if it would save nothing. */
function bestOf(groups: Iterable<Group>, one: Group): Group | undefined {
  let [best, most]: [Group | undefined, number] = [undefined, 0];
  for (const group of groups) {
    let gain = 0;
    for (const entry of one.entries) if (group.entries.has(entry)) gain += BYTES_OF_A_FILE;
    for (const entry of one.entries) if (gain > most) gain -= costOf(group, entry, one);
    for (const entry of group.entries) if (gain > most) gain -= costOf(one, entry, group);
    if (gain > most) [best, most] = [group, gain];
  }
  return best;
}

/** What an entry point that does not load a group would load with it, without the one that it is added to. */
function costOf(group: Group, entry: string, present: Group): number {
  if (group.entries.has(entry)) return 0;
  const more = new Set<Group>();
  const visit = ({ needs }: Group): void => {
    for (const one of needs) {
      if (one === present || one.entries.has(entry) || more.has(one)) continue;
      more.add(one);
      visit(one);
    }
  };
  visit(group);
  return [...more].reduce((sum, { bytes }) => sum + bytes + BYTES_OF_A_FILE, group.bytes);
}

function join(group: Group, one: Group): void {
  group.paths.push(...one.paths);
  group.bytes += one.bytes;
  for (const needed of one.needs) if (needed !== group) group.needs.add(needed);
  for (const entry of one.entries) group.entries.add(entry);
  for (const entry of group.entries) for (const needed of group.needs) load(needed, entry);
}

function load(group: Group, entry: string): void {
  if (group.entries.has(entry)) return;
  group.entries.add(entry);
  for (const needed of group.needs) load(needed, entry);
}
