/**
 * The next batch of a rollout by the rules of Open Cluster Management, as they are: places are not refilled after mandatory groups,
 * failures of any group stop a rollout that has mandatory groups, and failures keep their place until the deadline. Pure.
 */
import { compareNames, type Group } from './groups.ts';
import { sizeOf } from './limits.ts';
import {
  failuresOf,
  isFailure,
  isMandatory,
  settle,
  timesOf,
  type State,
  type Strategy,
  type Times,
} from './strategy.ts';

/** The known state of a cluster. */
export interface Standing {
  readonly cluster: string;
  readonly state: State;
  /** Seconds since the state began. */
  readonly age: number;
}

export interface Batch {
  /** Names of clusters in the batch; those to apply start. */
  readonly rollout: string[];
  readonly timedOut: string[];
  /** Clusters with a state that are in no group. */
  readonly removed: string[];
  breached: boolean;
  /** Seconds after which time alone changes the batch; infinite if it does not. */
  recheckAfter: number;
}

type Groups = readonly Group<string>[];

interface Run {
  readonly existing: readonly Standing[];
  readonly times: Times;
  readonly batch: Batch;
}

export function ocmBatch(groups: Groups, strategy: Strategy, existing: readonly Standing[]): Batch {
  const names = new Set(groups.flatMap(({ members }) => members));
  const removed = existing.map(({ cluster }) => cluster).filter((cluster) => !names.has(cluster));
  const start = (): Run => ({
    existing: existing.filter(({ cluster }) => names.has(cluster)),
    times: timesOf(strategy, 'ocm'),
    batch: { rollout: [], timedOut: [], removed, breached: false, recheckAfter: Infinity },
  });
  const { type = 'All', maxConcurrency } = strategy;
  if (type === 'All') return perCluster(start(), groups, names.size, names.size);
  const first = groups.filter((group) => isMandatory(strategy, group));
  const rest = groups.filter((group) => !isMandatory(strategy, group));
  if (first.length > 0) {
    const batch = perGroup(start(), first, () => 0);
    if (batch.rollout.length > 0 || batch.timedOut.length > 0) return batch;
  }
  if (type === 'ProgressivePerGroup') return perGroup(start(), rest, (size) => failuresOf(strategy, size, 'ocm'));
  const count = rest.flatMap(({ members }) => members).length;
  const failures = failuresOf(strategy, names.size, 'ocm');
  return perCluster(start(), rest, sizeOf(maxConcurrency, count, count, 'ocm'), failures);
}

/** Takes a cluster into the batch if it has a place; its state now. */
function take({ batch, times }: Run, { cluster, state: before, age }: Standing): State {
  const { state, holds, recheckAfter } = settle(before, age, times, 'ocm');
  if (holds) batch.rollout.push(cluster);
  else if (state === 'TimedOut' && before !== 'TimedOut') batch.timedOut.push(cluster);
  batch.recheckAfter = Math.min(batch.recheckAfter, recheckAfter);
  return state;
}

function byName(names: readonly string[]): readonly string[] {
  return names.toSorted((a, b) => compareNames(a, b, 'ocm'));
}

function perCluster(run: Run, groups: Groups, size: number, failures: number): Batch {
  const { existing, batch } = run;
  let failed = 0;
  for (const standing of existing.toSorted((a, b) => compareNames(a.cluster, b.cluster, 'ocm'))) {
    const isHeld = batch.breached && standing.state === 'ToApply';
    if (!isHeld && isFailure(take(run, standing))) failed += 1;
    batch.breached = failed > failures;
    if (batch.rollout.length >= size) return batch;
  }
  const known = new Set(existing.map(({ cluster }) => cluster));
  const unknown = byName(groups.flatMap(({ members }) => members)).filter((cluster) => !known.has(cluster));
  if (!batch.breached) batch.rollout.push(...unknown.slice(0, size - batch.rollout.length));
  return batch;
}

function perGroup(run: Run, groups: Groups, failuresIn: (size: number) => number): Batch {
  const { existing, batch } = run;
  const begun = existing.filter(({ state }) => state !== 'ToApply');
  const states = new Map(begun.map((standing) => [standing.cluster, take(run, standing)]));
  let failed = 0;
  for (const { members } of groups) {
    const own = members.filter((cluster) => isFailure(states.get(cluster) ?? 'ToApply')).length;
    batch.rollout.push(...byName(members).filter((cluster) => !states.has(cluster)));
    batch.breached = own > failuresIn(members.length);
    failed += own;
    if (batch.breached || batch.rollout.length - failed > 0) break;
  }
  return batch;
}
