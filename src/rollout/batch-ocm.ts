/**
 * The next batch of a rollout by the rules of Open Cluster Management, as they are: places are not refilled after mandatory groups,
 * failures of any group stop a rollout that has mandatory groups, and failures keep their place until the deadline. Pure.
 */
import { compareNames, type Group } from './groups.ts';
import { sizeOf } from './limits.ts';
import { isFailure, settle, type Standing, type Times } from './standing.ts';
import { failuresOf, isMandatory, timesOf, type Strategy } from './strategy.ts';

export interface Batch {
  /** Clusters in the batch; those `ToApply` start. */
  readonly rollout: readonly Standing[];
  readonly timedOut: readonly string[];
  /** Clusters with a state that are in no group. */
  readonly removed: readonly string[];
  readonly breached: boolean;
  /** Seconds after which time alone changes the batch; infinite if it does not. */
  readonly recheckAfter: number;
}

type NameGroup = Group<string>;

/** `existing`: clusters with a known state. */
export function ocmBatch(
  groups: readonly NameGroup[],
  strategy: Strategy,
  { existing, now }: { readonly existing: readonly Standing[]; readonly now: number },
): Batch {
  const names = new Set(groups.flatMap(({ members }) => members));
  const present = existing.filter(({ cluster }) => names.has(cluster));
  const removed = existing.map(({ cluster }) => cluster).filter((cluster) => !names.has(cluster));
  const run = { existing: present, times: { ...timesOf(strategy, 'ocm'), now } };
  return { ...nextBatch(groups, strategy, run, names.size), removed };
}

interface Run {
  readonly existing: readonly Standing[];
  readonly times: Times;
}

type Found = Omit<Batch, 'removed'>;

function nextBatch(groups: readonly NameGroup[], strategy: Strategy, run: Run, total: number): Found {
  const { type = 'All', maxConcurrency } = strategy;
  if (type === 'All') return perCluster(groups, { size: total, failures: total }, run);
  const first = groups.filter((group) => isMandatory(strategy, group));
  const rest = groups.filter((group) => !first.includes(group));
  if (first.length > 0) {
    const batch = perGroup(first, () => 0, run);
    if (batch.rollout.length > 0 || batch.timedOut.length > 0) return batch;
  }
  if (type === 'ProgressivePerGroup') return perGroup(rest, (size) => failuresOf(strategy, size, 'ocm'), run);
  const count = rest.reduce((sum, { members }) => sum + members.length, 0);
  const size = sizeOf(maxConcurrency, count, count, 'ocm');
  return perCluster(rest, { size, failures: failuresOf(strategy, total, 'ocm') }, run);
}

class Collector {
  readonly rollout: Standing[] = [];
  readonly timedOut: string[] = [];
  readonly times: Times;
  breached = false;
  recheckAfter = Number.POSITIVE_INFINITY;

  constructor(times: Times) {
    this.times = times;
  }

  /** Takes a cluster into the batch if it has a place; its state now. */
  take(standing: Standing): Standing['state'] {
    const { state, holds, recheckAfter } = settle(standing, this.times, 'ocm');
    if (holds) this.rollout.push(standing);
    else if (state === 'TimedOut') this.timedOut.push(standing.cluster);
    this.recheckAfter = Math.min(this.recheckAfter, recheckAfter);
    return state;
  }

  start(cluster: string): void {
    this.rollout.push({ cluster, state: 'ToApply' });
  }
}

function byName(names: readonly string[]): readonly string[] {
  return names.toSorted((a, b) => compareNames(a, b, 'ocm'));
}

function perCluster(
  groups: readonly NameGroup[],
  { size, failures }: { readonly size: number; readonly failures: number },
  { existing, times }: Run,
): Found {
  const found = new Collector(times);
  let failed = 0;
  for (const standing of existing.toSorted((a, b) => compareNames(a.cluster, b.cluster, 'ocm'))) {
    const isHeld = found.breached && standing.state === 'ToApply';
    if (isFailure(isHeld ? standing.state : found.take(standing))) failed += 1;
    found.breached = failed > failures;
    if (found.rollout.length >= size) return found;
  }
  if (found.breached) return found;
  const known = new Set(existing.map(({ cluster }) => cluster));
  for (const cluster of byName(groups.flatMap(({ members }) => members))) {
    if (found.rollout.length >= size) return found;
    if (!known.has(cluster)) found.start(cluster);
  }
  return found;
}

function perGroup(groups: readonly NameGroup[], failuresIn: (size: number) => number, { existing, times }: Run): Found {
  const found = new Collector(times);
  const states = new Map<string, Standing['state']>();
  for (const standing of existing) {
    if (standing.state !== 'ToApply') states.set(standing.cluster, found.take(standing));
  }
  let failed = 0;
  for (const { members } of groups) {
    const own = members.filter((cluster) => isFailure(states.get(cluster) ?? 'ToApply')).length;
    for (const cluster of byName(members)) if (!states.has(cluster)) found.start(cluster);
    found.breached = own > failuresIn(members.length);
    failed += own;
    if (found.breached || found.rollout.length - failed > 0) return found;
  }
  return found;
}
