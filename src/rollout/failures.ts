/** Failures that count although their clusters go or get something else: a bad version must not spread from there. Pure. */
import type { FailedClusters } from './fleet.ts';
import type { Group } from './groups.ts';
import { isFailure } from './strategy.ts';
import { isLeaving, type Run, type Target } from './target.ts';

const MAX_NAMES = 100;
/** Bytes of JSON: all readers of the object get them each time. */
const MAX_BYTES = 4096;

type Failure = readonly [cluster: string, group: string];

/** Failures on clusters that have left since, or have neither succeeded nor failed again. */
export function unresolvedOf({ failed }: Run, staged: readonly Target[]): readonly Failure[] {
  const before = Object.entries(failed.clusters);
  if (before.length === 0) return before;
  const known = staged.filter(({ isProven, state }) => isProven || isFailure(state));
  const names = new Set(known.map(({ cluster }) => cluster.name));
  return before.filter(([cluster]) => !names.has(cluster));
}

/** What is kept. Of more than have room, no one can say later whether they have recovered: these count until a retry. */
export function failedIn(
  groups: readonly Group<Target>[],
  unresolved: readonly Failure[],
  { more: before = 0 }: FailedClusters,
): FailedClusters {
  const clusters = new Map(unresolved);
  let bytes = Buffer.byteLength(JSON.stringify(unresolved));
  let unnamed = 0;
  for (const { name, members } of groups) {
    for (const target of members) {
      const { cluster, state } = target;
      if (!isFailure(state) || isLeaving(target)) continue;
      bytes += Buffer.byteLength(JSON.stringify([cluster.name, name]));
      if (clusters.size < MAX_NAMES && bytes <= MAX_BYTES) clusters.set(cluster.name, name);
      else unnamed += 1;
    }
  }
  const more = Math.max(before, unnamed);
  return { clusters: Object.fromEntries(clusters), ...(more > 0 && { more }) };
}

/** Why nothing begins while failures count whose clusters are not known. */
export function unnamedNote({ clusters, more = 0 }: FailedClusters): string | undefined {
  if (more === 0) return undefined;
  const total = Object.keys(clusters).length + more;
  return `${total} clusters have failed, and ${more} of them are not kept by name, so that they count until a retry: retry the add-on, or change it`;
}
