/** What a site has reported about an add-on, and what of that counts. Pure. */
import type { Cluster, ClusterAddon } from './fleet.ts';

/** Its status, unless that is about an earlier revision. */
export function reportOf({ spec, status }: Partial<ClusterAddon> = {}): ClusterAddon['status'] {
  const counts = status?.applied.revision === spec?.revision && status?.applied.hash === spec?.specHash;
  return counts ? status : undefined;
}

/** Why its state is as it is. */
export function whyOf(record: Partial<ClusterAddon> | undefined): string | undefined {
  return reportOf(record)?.message;
}

/**
 * Seconds since 1970 before which a success on a cluster does not count, whatever its site says: now if it is new, and 0 if it has lasted
 * before. `seen`: when successes that have not lasted yet were first seen, by cluster, 0 where there is none yet; undefined where that is not
 * kept.
 */
export function seenAt(
  {
    seen,
    fleet: { now },
  }: { readonly seen: ReadonlyMap<string, number> | undefined; readonly fleet: { readonly now: number } },
  { name }: Cluster,
): number {
  const at = seen?.get(name);
  return at === undefined ? 0 : Math.min(at || now, now);
}
