/** Which releases of a store may go. Pure: a listing, the current release and a rule give a plan with reasons. */
import { isRelease } from '../../core/catalogue.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { compareVersions } from '../../core/ref.ts';
import type { ListedObject } from '../store.ts';

/** Says that a release is being removed; written first and deleted last, so that a removal cut off can go on. */
export function pruneMark(release: string): string {
  return `${release}/pruned.json`;
}

/** What lies below one release's name. */
interface ReleaseObjects {
  readonly release: string;
  readonly objects: readonly ListedObject[];
  readonly catalogue: ListedObject | undefined;
  readonly marked: boolean;
}

export interface Survey {
  readonly releases: ReadonlyMap<string, ReleaseObjects>;
  /** Unversioned copies. */
  readonly latest: ReadonlySet<string>;
}

export interface PruneRule {
  /** How many of the newest finished releases stay. */
  readonly keep: number | undefined;
  /** Milliseconds; what is younger stays. */
  readonly olderThan: number | undefined;
  readonly now: Date;
}

export interface PruneChoice {
  readonly go: readonly (ReleaseObjects & { readonly because: string })[];
  /** Release strings of all others. */
  readonly stay: readonly string[];
}

/** Groups a listing of a whole store. What does not look like a release or a package is nobody's business here. */
export function surveyOf(objects: Iterable<ListedObject>): Survey {
  const groups = new Map<string, ListedObject[]>();
  const latest = new Set<string>();
  for (const object of objects) {
    const slash = object.key.indexOf('/');
    const release = object.key.slice(0, Math.max(0, slash));
    if (slash === -1 && object.key.endsWith('.tar.gz')) latest.add(object.key);
    if (slash > 0 && isRelease(release)) groups.set(release, [...(groups.get(release) ?? []), object]);
  }
  const releases = new Map<string, ReleaseObjects>();
  for (const [release, all] of groups) {
    const catalogue = all.find(({ key }) => key === storeKey.catalogue(release));
    const marked = all.some(({ key }) => key === pruneMark(release));
    releases.set(release, { release, objects: all, catalogue, marked });
  }
  return { releases, latest };
}

const DAY = 24 * 60 * 60 * 1000;
/** Only names that publishing makes by itself: other places without a catalogue may be anything. */
const OWN_NAME = /^v\d{4}\.\d\d\.\d\d-/;

/**
 * The current release stays, the one that is signed as the current one, and so does every finished one that is as new as it or newer: it may become current.
 * Beyond `keep` *and* older than `olderThan` a release goes; without a catalogue only one whose removal was cut off, or
 * one that nobody has written to for `olderThan` and at least a day.
 */
export function choosePruned(
  { releases }: Survey,
  { current, signed }: { readonly current: string; readonly signed: string | undefined },
  { keep = 1, olderThan, now }: PruneRule,
): PruneChoice {
  const own = releases.get(current)?.catalogue;
  if (own === undefined) {
    throw new CurlewError('NOT_FOUND', `the current release ${current} has no catalogue`, {
      hint: `curlew reindex STORE --release ${current} makes it anew; nothing is pruned before`,
    });
  }
  // What a store cannot date counts as written just now.
  const timeOf = ({ modified = now }: ListedObject): number => modified.getTime();
  const newestFirst = [...releases.values()]
    .flatMap((one) => (one.catalogue === undefined ? [] : [{ release: one.release, time: timeOf(one.catalogue) }]))
    .toSorted((a, b) => b.time - a.time || compareVersions(b.release, a.release));
  const kept = new Set(newestFirst.slice(0, keep).map(({ release }) => release));
  const because = (one: ReleaseObjects): string | undefined => {
    if (one.release === current || one.release === signed) return undefined;
    if (one.catalogue === undefined) {
      if (one.marked) return 'its removal was cut off';
      if (olderThan === undefined || !OWN_NAME.test(one.release)) return undefined;
      const youngest = Math.max(...one.objects.map(timeOf));
      return now.getTime() - youngest > Math.max(olderThan, DAY) ? 'it was never finished' : undefined;
    }
    const time = timeOf(one.catalogue);
    if (kept.has(one.release) || time >= timeOf(own)) return undefined;
    if (olderThan !== undefined && now.getTime() - time <= olderThan) return undefined;
    return olderThan === undefined ? 'newer ones are enough' : 'it is old';
  };
  const judged = [...releases.values()].map((one) => ({ one, why: because(one) }));
  return {
    go: judged
      .flatMap(({ one, why }) => (why === undefined ? [] : [{ ...one, because: why }]))
      .toSorted((a, b) => compareVersions(a.release, b.release)),
    stay: judged.flatMap(({ one, why }) => (why === undefined ? [one.release] : [])).toSorted(compareVersions),
  };
}
