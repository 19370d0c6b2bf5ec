/** What is wrong with a channel that each of its entries does not show alone. Pure, but for the reader that is passed in. */
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { asError, CurlewError, redact } from '../core/errors.ts';
import { byName, entryTitle, type Channel, type Compat, type Entry } from './channel.ts';
import { bestOf, meets } from './choose.ts';
import { hashOfManifest } from './location.ts';
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

const AT_ONCE = 8;

function finding(
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
 * never chosen in an index of kops, and requirements that the channel cannot meet.
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
 * Content of a manifest; undefined if it does not exist. What it throws is reported as the reason why the file cannot be read.
 */
export type ReadManifest = (
  location: string,
  options: { readonly signal: AbortSignal },
) => Promise<Uint8Array | undefined>;

/**
 * Findings about the manifests of a channel: those that do not exist or cannot be read, and hashes that are missing or of other
 * contents. A hash of a `Channel` is of all bytes; one of kops is without the white space at both ends. Packages are
 * checked by the catalogue of their release.
 */
export async function checkManifests(
  { entries, kind }: Channel,
  read: ReadManifest,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Diagnostic[]> {
  const files = new Map<string, Entry[]>();
  for (const entry of entries) {
    if (entry.source?.type !== 'manifest') continue;
    const { location } = entry.source;
    const owners = files.get(location);
    if (owners === undefined) files.set(location, [entry]);
    else owners.push(entry);
  }
  const found: Diagnostic[] = [];
  const left = [...files];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      signal.throwIfAborted();
      const [location, owners] = next;
      found.push(...(await manifestFindings({ location, owners, kind }, read, { signal })));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found.toSorted(compareDiagnostics);
}

async function manifestFindings(
  {
    location,
    owners,
    kind,
  }: { readonly location: string; readonly owners: readonly Entry[]; readonly kind: Channel['kind'] },
  read: ReadManifest,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Diagnostic[]> {
  const all = (message: string, hint?: string): readonly Diagnostic[] =>
    owners.map((entry) => finding('error', 'file', entry, redact(`${entryTitle(entry)}: ${message}`), hint));
  let content: Uint8Array | undefined;
  try {
    content = await read(location, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError) return all(error.message, error.hint);
    return all(`cannot read ${location}: ${asError(error).message}`);
  }
  if (content === undefined) return all(`${location} does not exist`);
  return owners.flatMap((entry) => {
    const field = kind === 'Channel' ? 'hash' : 'manifestHash';
    const title = entryTitle(entry);
    if (entry.hash === '') {
      const message = `${title} has no ${field}: a change of its manifest is not noticed`;
      return [
        finding(
          'warning',
          'hash',
          entry,
          message,
          `write ${field}: ${kind === 'Channel' ? 'sha256:' : ''}${hashOfManifest(content, { kind })}`,
        ),
      ];
    }
    const actual = hashOfManifest(content, { kind, hash: entry.hash });
    if (entry.hash === actual) return [];
    const message = redact(`${title}: ${location} has the hash ${actual}, not ${entry.hash}`);
    return [finding('error', 'hash', entry, message, 'publish the manifest again, or correct the hash')];
  });
}
