/** What is wrong with a channel that each of its entries does not show alone. Pure. */
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { byName, entryTitle, type Channel, type Compat, type Entry, type Requirement } from './channel.ts';
import { bestOf, meets } from './choose.ts';
import {
  compareTriples,
  complement,
  formatRange,
  gapsIn,
  intersection,
  union,
  type Interval,
  type VersionRange,
} from './range.ts';

/** Entries of a circle. */
const MOST_SHOWN = 20;

export function finding(
  severity: Diagnostic['severity'],
  code: string,
  { place }: Entry,
  message: string,
  hint?: string,
): Diagnostic {
  return { code: `channel/${code}`, severity, message, place, hint };
}

/**
 * Findings over all entries of a channel: ranges that cannot be read (an error, where kops only skips the entry), Kubernetes
 * versions between two ranges that no entry fits, entries between which only the order of the file decides, entries that are
 * never chosen in an index of kops, and requirements that the channel cannot meet or that are circular.
 */
export function checkChannel({ entries, compat }: Channel): readonly Diagnostic[] {
  const addons = byName(entries);
  const found = entries.flatMap((entry) => [
    ...(entry.range === undefined
      ? [
          finding(
            'error',
            'range',
            entry,
            `${entryTitle(entry)} is never chosen: its range cannot be read`,
            'fix kubernetesVersion',
          ),
        ]
      : []),
    ...requirementFindings(entry, addons),
  ]);
  for (const own of addons.values()) {
    found.push(...gapFindings(own), ...tieFindings(own, compat));
    if (compat === 'kops') found.push(...shadowFindings(own));
  }
  found.push(...circleFindings(entries, addons));
  return found.toSorted(compareDiagnostics);
}

function gapFindings(own: readonly Entry[]): readonly Diagnostic[] {
  const gaps = gapsIn(union(own.flatMap(({ range = [] }) => range)));
  return gaps.flatMap((gap) => {
    const before = own.find(({ range = [] }) => range.some(({ to }) => to.join('.') === gap.from.join('.')));
    if (before === undefined) return [];
    const message = `no entry of ${before.name} is for Kubernetes ${formatRange([gap])}`;
    return [finding('warning', 'gap', before, message, 'make the ranges meet: "<1.30.0" and ">=1.30.0"')];
  });
}

/** Entries of equal rank that fit the same Kubernetes version always win or lose together: only their order decides. */
function tieFindings(own: readonly Entry[], compat: Compat): readonly Diagnostic[] {
  const ranks = new Map<string, Part[]>();
  for (const [order, entry] of own.entries()) {
    const rank = compat === 'kops' ? keyOf(entry) : (entry.version ?? '');
    const parts = ranks.get(rank) ?? [];
    ranks.set(rank, parts);
    for (const interval of entry.range ?? []) parts.push({ entry, order, interval });
  }
  return [...ranks.values()].flatMap((parts) => {
    const found = new Map<Entry, Diagnostic>();
    let furthest: Part | undefined;
    for (const part of parts.toSorted((a, b) => compareTriples(a.interval.from, b.interval.from))) {
      const both = furthest === undefined ? [] : intersection([furthest.interval], [part.interval]);
      if (furthest !== undefined && both.length > 0 && furthest.entry !== part.entry) {
        const [one, other] = furthest.order < part.order ? [furthest.entry, part.entry] : [part.entry, furthest.entry];
        if (!found.has(other)) found.set(other, tie(one, other, { both, compat }));
      }
      if (furthest === undefined || compareTriples(furthest.interval.to, part.interval.to) < 0) furthest = part;
    }
    return [...found.values()];
  });
}

interface Part {
  readonly entry: Entry;
  readonly order: number;
  readonly interval: Interval;
}

function keyOf({ id, hash }: Entry): string {
  return `${id} ${hash}`;
}

function tie(
  one: Entry,
  other: Entry,
  { both, compat }: { readonly both: VersionRange; readonly compat: Compat },
): Diagnostic {
  const same = compat === 'kops' ? 'id and manifestHash' : 'version';
  const winner = bestOf([one, other], compat) === other ? 'the later one wins' : 'the first one wins';
  const where = `both fit Kubernetes ${formatRange(both)}`;
  const message = `${entryTitle(other)} has the same ${same} as line ${one.place.line}, and ${where}: ${winner}`;
  return finding(
    compat === 'native' ? 'error' : 'warning',
    'tie',
    other,
    message,
    'delete one, or make their ranges exclude each other',
  );
}

/** To kops, every later entry with another id or hash wins. */
function shadowFindings(own: readonly Entry[]): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  const later = new Set<string>();
  let covered: VersionRange = [];
  for (const entry of own.toReversed()) {
    const { range = [] } = entry;
    const isCovered = range.length > 0 && intersection(range, complement(covered)).length === 0;
    if (isCovered && !later.has(keyOf(entry))) {
      const message = `${entryTitle(entry)} is never chosen: later entries fit wherever it does`;
      found.push(finding('warning', 'never', entry, message, 'delete it, or narrow the ranges of the later ones'));
    }
    later.add(keyOf(entry));
    covered = union([...covered, ...range]);
  }
  return found;
}

function requirementFindings(entry: Entry, addons: ReadonlyMap<string, readonly Entry[]>): readonly Diagnostic[] {
  return entry.requires.flatMap((required) => {
    const others = addons.get(required.name);
    const wanted = `${required.name} ${required.version}`.trim();
    if (others === undefined) {
      const message = `${entryTitle(entry)} requires ${wanted}, which this channel does not have`;
      return [finding('warning', 'requires', entry, message, 'it must be installed in another way')];
    }
    if (others.some(({ version }) => meets(required, version))) return [];
    const message = `${entryTitle(entry)} requires ${wanted}, and no entry is such a version`;
    return [finding('error', 'requires', entry, message, 'add that version, or change requires')];
  });
}

/**
 * Entries that nothing can be applied before, because each alternative of what they require requires them. An alternative counts
 * if it has a required version and fits a Kubernetes version of the entry.
 */
function circleFindings(
  entries: readonly Entry[],
  addons: ReadonlyMap<string, readonly Entry[]>,
): readonly Diagnostic[] {
  const meeting = new Map<string, readonly Entry[]>();
  const alternatives = (entry: Entry, required: Requirement): readonly Entry[] => {
    const key = `${required.name} ${required.version}`;
    const found =
      meeting.get(key) ?? (addons.get(required.name) ?? []).filter(({ version }) => meets(required, version));
    meeting.set(key, found);
    return found.filter(({ range = [] }) => intersection(range, entry.range ?? []).length > 0);
  };
  const blocked = new Set(entries.filter(({ requires }) => requires.length > 0));
  const blocks = (entry: Entry, required: Requirement): readonly Entry[] => {
    const able = alternatives(entry, required);
    return able.every((other) => blocked.has(other)) ? able : [];
  };
  for (let before = Number.POSITIVE_INFINITY; blocked.size < before;) {
    before = blocked.size;
    for (const entry of blocked)
      if (entry.requires.every((required) => blocks(entry, required).length === 0)) blocked.delete(entry);
  }
  const found: Diagnostic[] = [];
  const seen = new Set<Entry>();
  for (const start of blocked) {
    const way: Entry[] = [];
    let next: Entry | undefined = start;
    while (next !== undefined && !seen.has(next)) {
      const entry: Entry = next;
      seen.add(entry);
      way.push(entry);
      next = entry.requires.flatMap((required) => blocks(entry, required))[0];
    }
    const from = next === undefined ? -1 : way.indexOf(next);
    const circle = way.slice(from === -1 ? way.length : from);
    const [first] = circle;
    if (first === undefined) continue;
    const titles = [...circle, first].slice(0, MOST_SHOWN).map(entryTitle).join(', which requires ');
    const message = `${titles.replace(', which', '')}: none of them can be first`;
    found.push(finding('error', 'circle', first, message, 'remove one of these requirements'));
  }
  return found;
}
