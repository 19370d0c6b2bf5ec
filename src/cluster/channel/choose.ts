/** Which entry of a channel a cluster gets, and why. Pure. */
import { compare } from 'semver';
import { compareVersions } from '../../core/ref.ts';
import { entryTitle, type Candidate, type Compat, type Identity, type Requirement } from './channel.ts';
import { compareTriples, contains, formatRange, parseTriple, parseVersion, type Triple } from './range.ts';

/** The generation that current programs write into records: 1 is since kops prunes. */
export const GENERATION = 1;

export type Reason =
  | 'version-greater'
  | 'version-lower'
  | 'version-missing'
  | 'version-unparseable'
  | 'kept-unparseable'
  | 'kept-unversioned'
  | 'id-differs'
  | 'hash-differs'
  | 'generation-older'
  | 'generation-newer'
  | 'same';

interface Verdict {
  readonly replaces: boolean;
  readonly reason: Reason;
}

const yes = (reason: Reason): Verdict => ({ replaces: true, reason });
const no = (reason: Reason): Verdict => ({ replaces: false, reason });

/**
 * Does `incoming` replace `kept`, which is an earlier entry, or what is installed?
 *
 * - `kops-2017`: a greater semantic version does, never a lower one; of equal versions another id or hash does.
 * - `kops`: another id or hash does, and whatever was applied by a program of an older generation. Versions do not count.
 * - `native`: as `kops-2017`, in curlew's order of versions. An incoming entry without hash never differs by it.
 */
export function replaces(current: Identity, incoming: Identity, compat: Compat): Verdict {
  if (compat === 'kops') return byContent(current, incoming) ?? byGeneration(current, incoming);
  if (incoming.version === undefined && current.version !== undefined) return no('version-missing');
  // Without any version kops keeps the first; natively id and hash still decide.
  if (incoming.version === undefined) {
    return compat === 'native' ? (byContent(current, known(current, incoming)) ?? no('same')) : no('version-missing');
  }
  if (current.version === undefined) return yes('kept-unversioned');
  if (compat === 'native') {
    const order = compareVersions(incoming.version, current.version);
    return byVersion(order) ?? byContent(current, known(current, incoming)) ?? no('same');
  }
  const version = parseVersion(incoming.version);
  if (version === undefined) return no('version-unparseable');
  const keptVersion = parseVersion(current.version);
  if (keptVersion === undefined) return yes('kept-unparseable');
  return byVersion(compare(version, keptVersion)) ?? byContent(current, incoming) ?? no('same');
}

function byVersion(order: number): Verdict | undefined {
  if (order === 0) return undefined;
  return order > 0 ? yes('version-greater') : no('version-lower');
}

function known(current: Identity, incoming: Identity): Identity {
  return (incoming.hash ?? '') === '' ? { ...incoming, hash: current.hash } : incoming;
}

function byContent(current: Identity, incoming: Identity): Verdict | undefined {
  if ((incoming.id ?? '') !== (current.id ?? '')) return yes('id-differs');
  return (incoming.hash ?? '') === (current.hash ?? '') ? undefined : yes('hash-differs');
}

function byGeneration(current: Identity, incoming: Identity): Verdict {
  const [before, now] = [current.generation ?? 0, incoming.generation ?? GENERATION];
  if (before === now) return no('same');
  return before < now ? yes('generation-older') : no('generation-newer');
}

/** Entries of one file have the generation of the program that reads them. */
function replacesEntry(current: Candidate, incoming: Candidate, compat: Compat): Verdict {
  return replaces({ ...current, generation: GENERATION }, incoming, compat);
}

/** The one of several alternatives that is chosen, in the order of their file. Undefined if there are none. */
export function bestOf<T extends Candidate>(entries: readonly T[], compat: Compat): T | undefined {
  let best: T | undefined;
  for (const entry of entries) if (best === undefined || replacesEntry(best, entry, compat).replaces) best = entry;
  return best;
}

export function runsOn({ range }: Candidate, kubernetes: Triple): boolean {
  return range !== undefined && contains(range, kubernetes);
}

/** The chosen entry of each add-on that has one for this Kubernetes version, in the order in which the file names the add-ons. */
export function choose<T extends Candidate>(
  entries: readonly T[],
  kubernetes: Triple,
  compat: Compat,
): ReadonlyMap<string, T> {
  const chosen = new Map<string, T>();
  for (const entry of entries) {
    if (!runsOn(entry, kubernetes)) continue;
    const current = chosen.get(entry.name);
    if (current === undefined || replacesEntry(current, entry, compat).replaces) chosen.set(entry.name, entry);
  }
  return chosen;
}

export interface Explained<T> {
  readonly entry: T;
  /** `lost`: it fits, and another entry was preferred. */
  readonly outcome: 'chosen' | 'lost' | 'other-kubernetes' | 'unreadable-range';
  /** The entry that was preferred to it, and by what. */
  readonly to?: { readonly entry: T; readonly reason: Reason };
  /** For people. */
  readonly because: string;
}

export interface Explanation<T> {
  readonly chosen: T | undefined;
  /** Every entry of the add-on, in the order of the file. */
  readonly entries: readonly Explained<T>[];
  /** If none is chosen: those for the next lower and the next higher versions of Kubernetes. */
  readonly near: readonly T[];
}

/** Why this entry of an add-on is chosen for a Kubernetes version, and why not each other one. */
export function explainChoice<T extends Candidate>(
  entries: readonly T[],
  { addon, kubernetes, compat }: { readonly addon: string; readonly kubernetes: Triple; readonly compat: Compat },
): Explanation<T> {
  const own = entries.filter(({ name }) => name === addon);
  const lost = new Map<T, { readonly entry: T; readonly reason: Reason }>();
  let chosen: T | undefined;
  for (const entry of own) {
    if (!runsOn(entry, kubernetes)) continue;
    const verdict = chosen === undefined ? undefined : replacesEntry(chosen, entry, compat);
    if (chosen !== undefined && verdict?.replaces === false) lost.set(entry, { entry: chosen, reason: verdict.reason });
    else {
      if (chosen !== undefined && verdict !== undefined) lost.set(chosen, { entry, reason: verdict.reason });
      chosen = entry;
    }
  }
  const explained = own.map((entry): Explained<T> => {
    const to = lost.get(entry);
    if (to !== undefined) return { entry, outcome: 'lost', to, because: whyLost(entry, to) };
    if (entry === chosen)
      return { entry, outcome: 'chosen', because: `it fits ${kubernetes.join('.')}, and no other is preferred` };
    if (entry.range === undefined) {
      return { entry, outcome: 'unreadable-range', because: 'its range of Kubernetes versions cannot be read' };
    }
    const because = `it is for Kubernetes ${formatRange(entry.range)}, not ${kubernetes.join('.')}`;
    return { entry, outcome: 'other-kubernetes', because };
  });
  return { chosen, entries: explained, near: chosen === undefined ? nearTo(own, { kubernetes, compat }) : [] };
}

function nearTo<T extends Candidate>(
  own: readonly T[],
  { kubernetes, compat }: { readonly kubernetes: Triple; readonly compat: Compat },
): readonly T[] {
  const ends = (side: 'from' | 'to', isNear: (version: Triple) => boolean): readonly Triple[] =>
    own.flatMap(({ range = [] }) => range.map((interval) => interval[side]).filter(isNear)).toSorted(compareTriples);
  const last = ends('to', (version) => compareTriples(version, kubernetes) <= 0).at(-1);
  const [first] = ends('from', (version) => compareTriples(version, kubernetes) > 0);
  const at = (side: 'from' | 'to', version: Triple | undefined): readonly T[] => {
    const touching = own.filter(({ range = [] }) =>
      range.some((interval) => version !== undefined && compareTriples(interval[side], version) === 0),
    );
    const best = bestOf(touching, compat);
    return best === undefined ? [] : [best];
  };
  return [...new Set([...at('to', last), ...at('from', first)])];
}

const WHY_LOST: Readonly<Record<Reason, string>> = {
  'version-greater': 'has a greater version',
  'version-lower': 'has a greater version',
  'version-missing': 'has a version or comes first',
  'version-unparseable': 'has a version that can be compared',
  'kept-unparseable': 'has a version that can be compared',
  'kept-unversioned': 'has a version',
  'id-differs': 'comes later, with another id',
  'hash-differs': 'comes later, with another hash',
  'generation-older': 'is of a newer generation',
  'generation-newer': 'is of a newer generation',
  same: 'comes first, and says the same',
};

function whyLost(
  entry: Candidate,
  { entry: other, reason }: { readonly entry: Candidate; readonly reason: Reason },
): string {
  return `${entryTitle(other)} ${WHY_LOST[reason]}`;
}

/** The decision about one add-on. A `downgrade`, also to what cannot be compared, is held back until it is asked for. */
export interface Decision {
  readonly action: 'install' | 'update' | 'downgrade' | 'none';
  readonly reason: Reason | 'not-installed';
  /** The installed version is not for this Kubernetes version, as far as the channel says. */
  readonly incompatible: boolean;
}

/**
 * The decision of a pass about the chosen entry of an add-on: `recorded` is what is installed, undefined if nothing is. `entries` are
 * those of its channel, from which it is known whether that still fits. An entry that is lower than what is installed, or that has
 * other content and no version to compare, is a downgrade; kops since 2021 does not look at versions and has none.
 */
export function decideVersion(
  chosen: Candidate,
  recorded: Identity | undefined,
  {
    entries,
    kubernetes,
    compat,
  }: { readonly entries: readonly Candidate[]; readonly kubernetes: Triple; readonly compat: Compat },
): Decision {
  if (recorded === undefined) return { action: 'install', reason: 'not-installed', incompatible: false };
  const { replaces: isNew, reason } = replaces(recorded, chosen, compat);
  const same = entriesOf(entries, chosen.name, recorded);
  const incompatible = same.length > 0 && !same.some((entry) => runsOn(entry, kubernetes));
  if (isNew) return { action: 'update', reason, incompatible };
  const isOther = reason === 'version-lower' || byContent(recorded, known(recorded, chosen)) !== undefined;
  const isHeld = isOther && HELD_BACK.has(reason);
  return { action: isHeld ? 'downgrade' : 'none', reason, incompatible };
}

const HELD_BACK: ReadonlySet<Reason> = new Set(['version-lower', 'version-missing', 'version-unparseable']);

/**
 * Is a changed file applied although its entry has no hash, and the same version? Natively it is: the content is compared with
 * that of the record. kops compares only what the index says.
 */
export function noticesContent({ hash = '' }: Identity, compat: Compat): boolean {
  return hash === '' && compat === 'native';
}

/** The entries of an add-on that may be what is installed: of what is known of that, all is the same. */
export function entriesOf<T extends Candidate>(
  entries: readonly T[],
  addon: string,
  installed: Identity,
): readonly T[] {
  const { version = '', id = '', hash = '' } = installed;
  const plain = (text = ''): string => text.replace(/^v(?=\d)/, '');
  return entries.filter(
    (entry) =>
      entry.name === addon &&
      (version === '' || plain(entry.version) === plain(version)) &&
      (id === '' || (entry.id ?? '') === id) &&
      (hash === '' || (entry.hash ?? '') === '' || entry.hash === hash),
  );
}

/** Does an add-on of this version, undefined if it is not installed, meet a requirement? */
export function meets({ version: wanted, range }: Requirement, version: string | undefined): boolean {
  if (version === undefined) return false;
  const triple = parseTriple(version);
  return wanted === '' || (triple !== undefined && range !== undefined && contains(range, triple));
}
