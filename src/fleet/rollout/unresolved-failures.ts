/** Failures that count although their clusters go or get something else: a bad version must not spread from there. Pure. */
import type { FailedClusters } from './fleet.ts';
import type { Group } from './groups.ts';
import { Names, type Failure } from './named-failures.ts';
import { isFailure, settle } from './strategy.ts';
import type { Rollout, Target } from './target.ts';

/** Failures on clusters that have left since, or have neither succeeded nor failed again. */
export function unresolvedOf({ failed }: Rollout, staged: readonly Target[]): readonly Failure[] {
  const before = Object.entries(failed.clusters);
  if (before.length === 0) return before;
  const known = staged.filter(({ isProven, state }) => isProven || isFailure(state));
  const names = new Set(known.map(({ cluster }) => cluster.name));
  return before.filter(([cluster]) => !names.has(cluster));
}

/**
 * What is kept, and how many failures are assumed: of more than have room, no one can say later whether they have recovered. Once they
 * are not seen any more, they count until a retry.
 */
export function failedIn(
  groups: readonly Group<Target>[],
  unresolved: readonly Failure[],
  { more: before = 0 }: FailedClusters,
): { readonly failed: FailedClusters; readonly assumed: number } {
  const named = new Names<string>();
  for (const one of unresolved) named.add(one);
  let unnamed = 0;
  for (const { name, members } of groups) {
    for (const target of members) {
      const { cluster, state } = target;
      if (!isFailure(state) || isLeaving(target)) continue;
      if (!named.add([cluster.name, name])) unnamed += 1;
    }
  }
  const more = Math.max(before, unnamed);
  return { failed: { clusters: named.clusters, ...(more > 0 && { more }) }, assumed: more - unnamed };
}

/** It is to lose the add-on, or is about to. */
function isLeaving({ action, record }: Target): boolean {
  return action === 'delete' || record?.spec.action === 'Remove';
}

/** Is it to lose an add-on that has failed there? What is not kept by name is known as long as its record is about that. */
export function hasFailed(target: Target): boolean {
  const { run, cluster, record, wants, action, own, age } = target;
  if (!run.keepsFailed || !isLeaving(target) || (wants && action !== 'delete')) return false;
  const { clusters, more = 0 } = run.failed;
  if (Object.hasOwn(clusters, cluster.name)) return true;
  return more > 0 && record?.spec.action === 'Install' && isFailure(settle(own, age, run.times, run.rules).state);
}
