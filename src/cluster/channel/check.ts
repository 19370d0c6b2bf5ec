/** Mistakes of a channel that each of its entries does not show alone. Pure. */
import { compareDiagnostics, type Diagnostic } from '../../core/diagnostic.ts';
import { byName, entryTitle, channelFinding, type Channel, type Compat, type Entry } from './channel.ts';
import { checkRequirements } from './check-requires.ts';
import { bestOf } from './choose.ts';
import {
  compareTriples,
  complement,
  EVERY_VERSION,
  formatRange,
  gapsIn,
  intersection,
  union,
  type Interval,
  type VersionRange,
} from './range.ts';

/**
 * Findings over all entries of a channel: ranges that cannot be read (an error, where kops only skips the entry), Kubernetes
 * versions between two ranges that no entry fits, entries between which only the order of the file decides, entries that are
 * never chosen in an index of kops, and requirements that the channel cannot meet or that are circular.
 */
export function checkChannel({ entries, compat }: Channel): readonly Diagnostic[] {
  const addons = byName(entries);
  const findings = entries
    .filter(({ range }) => range === undefined)
    .map((entry) => {
      const message = `${entryTitle(entry)} is never chosen: its range cannot be read`;
      return channelFinding('error', 'range', entry, message, 'fix kubernetesVersion');
    });
  for (const own of addons.values()) {
    findings.push(...gapFindings(own), ...tieFindings(own, compat));
    if (compat === 'kops') findings.push(...shadowFindings(own));
  }
  findings.push(...checkRequirements(entries, addons));
  return findings.toSorted(compareDiagnostics);
}

function gapFindings(own: readonly Entry[]): readonly Diagnostic[] {
  const gaps = gapsIn(union(own.flatMap(({ range = [] }) => range)));
  return gaps.flatMap((gap) => {
    const before = own.find(({ range = [] }) => range.some(({ to }) => to.join('.') === gap.from.join('.')));
    if (before === undefined) return [];
    const message = `no entry of ${before.name} is for Kubernetes ${formatRange([gap])}`;
    const [major, minor] = gap.from;
    const begin = `>=${major}.${Math.max(minor - 1, 0)}.0`;
    const hint = `let the next range begin at "${begin}", so that one version fits both sides of the upgrade`;
    return [channelFinding('warning', 'gap', before, message, hint)];
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
    const ties = new Map<Entry, Diagnostic>();
    let furthest: Part | undefined;
    for (const part of parts.toSorted((a, b) => compareTriples(a.interval.from, b.interval.from))) {
      const both = furthest === undefined ? [] : intersection([furthest.interval], [part.interval]);
      if (furthest !== undefined && both.length > 0 && furthest.entry !== part.entry) {
        const [one, other] = furthest.order < part.order ? [furthest.entry, part.entry] : [part.entry, furthest.entry];
        if (!ties.has(other)) ties.set(other, tie(one, other, { both, compat }));
      }
      if (furthest === undefined || compareTriples(furthest.interval.to, part.interval.to) < 0) furthest = part;
    }
    return [...ties.values()];
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
  const range = formatRange(both);
  const where = `both fit ${range === EVERY_VERSION ? `${range} of Kubernetes` : `Kubernetes ${range}`}`;
  const message = `${entryTitle(other)} has the same ${same} as line ${one.place.line}, and ${where}: ${winner}`;
  return channelFinding(
    compat === 'native' ? 'error' : 'warning',
    'tie',
    other,
    message,
    'delete one, or make their ranges exclude each other',
  );
}

/** To kops, every later entry with another id or hash wins. */
function shadowFindings(own: readonly Entry[]): readonly Diagnostic[] {
  const findings: Diagnostic[] = [];
  const later = new Set<string>();
  let covered: VersionRange = [];
  for (const entry of own.toReversed()) {
    const { range = [] } = entry;
    const isCovered = range.length > 0 && intersection(range, complement(covered)).length === 0;
    if (isCovered && !later.has(keyOf(entry))) {
      const message = `${entryTitle(entry)} is never chosen: later entries fit wherever it does`;
      findings.push(
        channelFinding('warning', 'never', entry, message, 'delete it, or narrow the ranges of the later ones'),
      );
    }
    later.add(keyOf(entry));
    covered = union([...covered, ...range]);
  }
  return findings;
}
