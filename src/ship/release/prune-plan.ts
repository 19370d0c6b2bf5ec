/** Selects releases to prune. Pure: computes a plan with reasons from a listing, the current release and a rule. */
import { isRelease } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { compareVersions } from '../../core/ref.ts';
import type { ListedObject } from '../store/store.ts';

/** Key of the marker of a release that is being removed; written first and deleted last, so that a removal can resume. */
export function pruneMarkerKey(release: string): string {
  return `${release}/pruned.json`;
}

/** The objects under one release's prefix. */
interface ReleaseObjects {
  readonly release: string;
  readonly objects: readonly ListedObject[];
  readonly catalog: ListedObject | undefined;
  readonly marked: boolean;
}

export interface Usage {
  readonly releases: ReadonlyMap<string, ReleaseObjects>;
  /** Keys of unversioned copies. */
  readonly latest: ReadonlySet<string>;
}

export interface PruneRule {
  /** Number of newest finished releases to keep. */
  readonly keep: number | undefined;
  /** Minimum age in milliseconds; younger releases are kept. */
  readonly olderThan: number | undefined;
  readonly now: Date;
  /** When each release appeared, from its catalog. Without one, the time in the store counts, which a copy of the store changes. */
  readonly published: ReadonlyMap<string, Date>;
}

/** A release that is not pruned, and why. */
export interface StayingRelease {
  readonly release: string;
  readonly because: string;
}

export interface PruneChoice {
  readonly go: readonly (ReleaseObjects & { readonly because: string })[];
  /** All other releases; no folder that is none. */
  readonly stay: readonly StayingRelease[];
  /** Releases of `go` whose age is doubtful, each with one of a lower version that stays: by times of the store that one is newer. */
  readonly doubtful: ReadonlyMap<string, string>;
}

/** Groups a listing of a whole store by release. Ignores keys that are neither in a release nor an unversioned package, such as the current channels. */
export function surveyOf(objects: Iterable<ListedObject>): Usage {
  const groups = new Map<string, ListedObject[]>();
  const latest = new Set<string>();
  for (const object of objects) {
    if (object.key.startsWith(storeKey.channels)) continue;
    const slash = object.key.indexOf('/');
    const release = object.key.slice(0, Math.max(0, slash));
    if (slash === -1 && object.key.endsWith('.tar.gz')) latest.add(object.key);
    if (slash > 0 && isRelease(release)) groups.set(release, [...(groups.get(release) ?? []), object]);
  }
  const releases = new Map<string, ReleaseObjects>();
  for (const [release, all] of groups) {
    const catalog = all.find(({ key }) => key === storeKey.catalog(release));
    const marked = all.some(({ key }) => key === pruneMarkerKey(release));
    releases.set(release, { release, objects: all, catalog, marked });
  }
  return { releases, latest };
}

interface Verdict {
  readonly isGoing: boolean;
  readonly because: string;
}

function stays(because: string): Verdict {
  return { isGoing: false, because };
}

function goes(because: string): Verdict {
  return { isGoing: true, because };
}

const DAY = 24 * 60 * 60 * 1000;
/** Release strings that publishing generates. Other folders without a catalog may be anything. */
const GENERATED_NAME = /^v\d{4}\.\d\d\.\d\d-/;

/**
 * Keeps the current release, the release that is signed as current, and every finished release at least as new as the current
 * one, since it may become current. Prunes other releases that are beyond `keep` *and* older than `olderThan`. Prunes a release
 * without a catalog only if its removal was interrupted, or if its newest object is older than `olderThan` and a day.
 */
export function choosePruned(
  { releases }: Usage,
  { current, signed }: { readonly current: string; readonly signed: string | undefined },
  { keep = 1, olderThan, now, published }: PruneRule,
): PruneChoice {
  const own = releases.get(current)?.catalog;
  if (own === undefined) {
    throw new CurlewError('NOT_FOUND', `the current release ${current} has no catalog`, {
      hint: `rebuild it with curlew reindex STORE --release ${current}, then prune`,
    });
  }
  // An object without a date counts as new.
  const timeOf = ({ modified = now }: ListedObject): number => modified.getTime();
  const dated = [...releases.values()].flatMap(({ release, catalog }) =>
    catalog === undefined ? [] : [{ release, time: published.get(release)?.getTime() ?? timeOf(catalog) }],
  );
  const times = new Map(dated.map(({ release, time }) => [release, time] as const));
  const age = (a: string, b: string): number => (times.get(a) ?? 0) - (times.get(b) ?? 0) || compareVersions(a, b);
  const newestFirst = dated.toSorted((a, b) => age(b.release, a.release));
  const newest = new Set(newestFirst.slice(0, keep).map(({ release }) => release));
  const judge = (one: ReleaseObjects): Verdict => {
    if (one.release === current) return stays('it is the current release');
    if (one.release === signed) return stays('it is signed as the current release');
    if (one.catalog === undefined) {
      if (one.marked) return goes('its removal was interrupted');
      if (olderThan === undefined) return stays('it is not finished');
      const youngest = Math.max(...one.objects.map(timeOf));
      const isLeft = now.getTime() - youngest > Math.max(olderThan, DAY);
      return isLeft
        ? goes('it was never finished')
        : stays('it is not finished, and something was written to it since');
    }
    const time = times.get(one.release) ?? 0;
    if (age(one.release, current) >= 0) return stays('it is at least as new as the current release');
    if (newest.has(one.release))
      return stays(keep === 1 ? 'it is the newest release' : `it is among the ${keep} newest`);
    // A promotion that is under way writes a catalog with an older time, and may yet make it current.
    const written = timeOf(one.catalog);
    if (written >= timeOf(own) && now.getTime() - written < DAY)
      return stays('it was written less than a day ago, after the current release, and may yet become current');
    if (olderThan !== undefined && now.getTime() - time <= olderThan) return stays('it is not old enough');
    return goes(olderThan === undefined ? 'enough newer releases exist' : 'it is old');
  };
  const evaluated = [...releases.values()]
    .filter(({ release, catalog, marked }) => catalog !== undefined || marked || GENERATED_NAME.test(release))
    .map((one) => ({ one, ...judge(one) }));
  const staying = evaluated.flatMap(({ one, isGoing }) => (!isGoing && one.catalog !== undefined ? [one.release] : []));
  const doubtful = evaluated.flatMap(({ one: { release, catalog }, isGoing }) => {
    if (!isGoing || catalog === undefined) return [];
    const lower = staying.find(
      (other) => compareVersions(other, release) < 0 && !(published.has(other) && published.has(release)),
    );
    return lower === undefined ? [] : [[release, lower] as const];
  });
  return {
    go: evaluated
      .flatMap(({ one, isGoing, because }) => (isGoing ? [{ ...one, because }] : []))
      .toSorted((a, b) => compareVersions(a.release, b.release)),
    doubtful: new Map(doubtful),
    stay: evaluated
      .flatMap(({ one: { release }, isGoing, because }) => (isGoing ? [] : [{ release, because }]))
      .toSorted((a, b) => compareVersions(a.release, b.release)),
  };
}
