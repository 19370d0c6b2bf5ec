/** Requirements between the entries of a channel that cannot be met, or that are circular. Pure. */
import type { Diagnostic } from '../../core/diagnostic.ts';
import { entryTitle, channelFinding, type Entry, type Requirement } from './channel.ts';
import { meets } from './choose.ts';
import { intersection } from './range.ts';

/** Comparisons of entries, after which a channel counts as too large: some seconds. */
const MAX_WORK = 3_000_000;
/** Entries of a circle. */
const MAX_SHOWN = 20;

type Addons = ReadonlyMap<string, readonly Entry[]>;

/** A requirement, once for all entries that have it. */
interface Need {
  readonly name: string;
  readonly wanted: string;
  /** Entries that meet it; undefined if the channel does not have the add-on. */
  readonly meeting: ReadonlySet<Entry> | undefined;
}

type Needing = ReadonlyMap<Entry, readonly Need[]>;

/** Findings about the requirements of all entries; `addons` are the entries by name. */
export function checkRequirements(entries: readonly Entry[], addons: Addons): readonly Diagnostic[] {
  const needs = new Map<string, Need>();
  const needing = new Map<Entry, readonly Need[]>();
  let work = 0;
  const needOf = (required: Requirement): Need => {
    const wanted = `${required.name} ${required.version}`.trim();
    const own = addons.get(required.name);
    work += needs.has(wanted) ? 1 : (own?.length ?? 1);
    const need = needs.get(wanted) ?? {
      name: required.name,
      wanted,
      meeting: own && new Set(own.filter(({ version }) => meets(required, version))),
    };
    needs.set(wanted, need);
    return need;
  };
  for (const entry of entries) {
    if (entry.requires.length > 0) needing.set(entry, entry.requires.map(needOf));
    if (work > MAX_WORK) return [tooMany(entry)];
  }
  return [...[...needing].flatMap(([entry, own]) => own.flatMap((need) => unmet(entry, need))), ...circles(needing)];
}

function tooMany(entry: Entry): Diagnostic {
  return channelFinding(
    'error',
    'requires',
    entry,
    'this channel has too many requirements to check',
    'write several channels',
  );
}

function unmet(entry: Entry, { wanted, meeting }: Need): readonly Diagnostic[] {
  if (meeting === undefined) {
    const message = `${entryTitle(entry)} requires ${wanted}, which this channel does not have`;
    return [channelFinding('warning', 'requires', entry, message, 'it must be installed in another way')];
  }
  if (meeting.size > 0) return [];
  const message = `${entryTitle(entry)} requires ${wanted}, and no entry is such a version`;
  return [channelFinding('error', 'requires', entry, message, 'add that version, or change requires')];
}

/**
 * Entries that nothing can be applied before, because each alternative of what they require requires them. An alternative counts
 * if it fits a Kubernetes version of the entry.
 */
function circles(needing: Needing): readonly Diagnostic[] {
  let work = 0;
  const isAlternative = (entry: Entry, other: Entry): boolean => {
    work += 1;
    return intersection(entry.range ?? [], other.range ?? []).length > 0;
  };
  /** By the name of what they wait for. */
  const waiting = new Map<string, Map<Need, Set<Entry>>>();
  const open = new Map<Entry, Set<Need>>();
  for (const [entry, needs] of needing) {
    const able = needs.filter(({ meeting }) => some(meeting, (other) => isAlternative(entry, other)));
    const candidates = able.filter(
      ({ meeting }) => !some(meeting, (other) => !needing.has(other) && isAlternative(entry, other)),
    );
    open.set(entry, new Set(candidates));
    for (const need of candidates) {
      const own = waiting.get(need.name) ?? new Map<Need, Set<Entry>>();
      waiting.set(need.name, own.set(need, (own.get(need) ?? new Set()).add(entry)));
    }
    if (work > MAX_WORK) return [tooMany(entry)];
  }
  // From the entries that can be applied to those that wait for them.
  const ready = [...open].flatMap(([entry, needs]) => (needs.size === 0 ? [entry] : []));
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    open.delete(next);
    const own = waiting.get(next.name) ?? new Map<Need, Set<Entry>>();
    for (const [need, entries] of own) {
      work += 1;
      if (need.meeting?.has(next) !== true) continue;
      for (const entry of entries) {
        if (!isAlternative(entry, next)) continue;
        entries.delete(entry);
        open.get(entry)?.delete(need);
        if (open.get(entry)?.size === 0) ready.push(entry);
      }
      if (entries.size === 0) own.delete(need);
    }
    if (work > MAX_WORK) return [tooMany(next)];
  }
  return circlesAmong(open, isAlternative);
}

function some(entries: Iterable<Entry> | undefined, test: (entry: Entry) => boolean): boolean {
  for (const entry of entries ?? []) if (test(entry)) return true;
  return false;
}

/** Each of the entries waits for others of them: from each, one way ends in a circle. */
function circlesAmong(
  open: ReadonlyMap<Entry, ReadonlySet<Need>>,
  isAlternative: (entry: Entry, other: Entry) => boolean,
): readonly Diagnostic[] {
  const findings: Diagnostic[] = [];
  const seen = new Set<Entry>();
  for (const start of open.keys()) {
    const way: Entry[] = [];
    let next: Entry | undefined = start;
    while (next !== undefined && !seen.has(next)) {
      const entry: Entry = next;
      seen.add(entry);
      way.push(entry);
      const [need] = open.get(entry) ?? [];
      next = undefined;
      some(need?.meeting, (other) => {
        if (!isAlternative(entry, other)) return false;
        next = other;
        return true;
      });
    }
    const circle = next === undefined || !way.includes(next) ? [] : way.slice(way.indexOf(next));
    const [first] = circle;
    if (first === undefined) continue;
    const titles = [...circle, first].slice(0, MAX_SHOWN).map(entryTitle).join(', which requires ');
    const message = `${titles.replace(', which', '')}: none of them can be first`;
    findings.push(channelFinding('error', 'circle', first, message, 'remove one of these requirements'));
  }
  return findings;
}
