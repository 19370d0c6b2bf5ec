/** One step of a whole fleet: what is written now, and why the rest waits. Pure. */
import { canonicalJson } from '../../core/digest.ts';
import { advance, type Hold, type Slot } from './batch.ts';
import { brake, withRemoved } from './brake.ts';
import { Memo } from './content.ts';
import type {
  ClusterAddon,
  ClusterAddonSpec,
  AddonContent,
  FailedClusters,
  FleetAddonStatus,
  Observed,
  Waiting,
  Writes,
} from './fleet.ts';
import { holdOf, letsStayUnproven, unprovenNote } from './gates.ts';
import { compareNames, groupsOf, type Group, type Grouping } from './groups.ts';
import { isLeft } from './leaving.ts';
import { retryNote, voidNote } from './orders.ts';
import { MAX_NAMES, Names } from './named-failures.ts';
import { ocmBatch } from './ocm-batch.ts';
import { asks, DELETIONS, pruningOf } from './pruning.ts';
import { seenAt, whyOf } from './reported.ts';
import { isFailure, type State } from './strategy.ts';
import { begins, Fleet, identityOn, isRemoval, isUnderRemoval, targetOf, type Rollout, type Target } from './target.ts';
import { failedIn, hasFailed, unresolvedOf } from './unresolved-failures.ts';

const MAX_WAITING = 20;
/** A message of a cluster, within why an add-on has gone back. */
const MAX_WHY = 512;
/** A cluster says itself what it has obeyed, and no number is to end the counting. */
const MAX_CLAIMED = 2 ** 31;
/** No group, batch or failure is in the way. */
const ANY_PLACE: Slot = { stopped: undefined, earlier: undefined, unproven: undefined, group: '', free: 1, kept: 1 };
const GONE_BACK = 'it has gone back to what was known as good';

/** What a step has found out about one add-on. */
interface AddonPlan {
  readonly run: Rollout;
  /** Each cluster that has the add-on or is to have it: its action, and why it waits. */
  readonly targets: readonly Target[];
  /** Clusters of which only the record goes. */
  readonly dropped: readonly Target[];
  /** Clusters that no longer exist: their records go, or the brake holds them. */
  readonly lost: readonly string[];
  readonly held: readonly string[];
  /** Why nothing new begins. */
  readonly stopped: string | undefined;
  readonly reached: number;
  readonly failed: FailedClusters;
}

/**
 * What a fleet needs at `now`, in seconds since 1970. The same state gives the same writes, and no more once they are made. A list
 * that is incomplete, or has no cluster although add-ons are installed and it is not known that all have gone, writes nothing. `seen`
 * receives the plan of each add-on, in natural order of their names.
 */
export function step(
  observed: Observed,
  now: number,
  memo: Memo = new Memo(),
  seen: (plan: AddonPlan) => void = () => undefined,
): Writes {
  const writes: Writes = { put: [], drop: [], status: [], released: [], left: [], detached: [] };
  const { complete, clusters, emptied = false, clusterAddons } = observed;
  if (!complete || (clusters.length === 0 && !emptied && clusterAddons.length > 0)) return writes;
  const fleet = new Fleet(observed, now, memo);
  let recheckAfter = Infinity;
  for (const run of fleet.runs.values()) {
    const plan = planOf(run);
    recheckAfter = Math.min(recheckAfter, write(plan, writes));
    seen(plan);
  }
  for (const { cluster, addon } of fleet.detached) writes.detached.push({ cluster, addon });
  for (const { name, deleting } of clusters) {
    const has = deleting === undefined || [...fleet.runs.values()].some(({ records }) => records.has(name));
    if (!has) writes.left.push(name);
  }
  return { ...writes, ...(recheckAfter < Infinity && { recheckAfter }) };
}

/** Returns the seconds after which time alone changes something. */
function write(plan: AddonPlan, writes: Writes): number {
  const { run, targets, dropped, lost, held } = plan;
  const { name, deleting, status: before = {} } = run.addon;
  const status = statusOf(plan);
  const toWindow = status.reasons['Window'] === undefined ? Infinity : 60 - (run.fleet.now % 60);
  let least = Math.min(toWindow, run.ordered.recheckAfter, run.brakedUntil - run.fleet.now);
  for (const target of targets) {
    if (begins(target)) writes.put.push({ cluster: target.cluster.name, addon: name, spec: specOf(target) });
    if (!target.wants || target.cluster.deleting !== undefined) least = Math.min(least, target.recheckAfter);
  }
  for (const { cluster, drop: reason } of dropped) {
    if (reason !== undefined) writes.drop.push({ cluster: cluster.name, addon: name, reason });
  }
  for (const cluster of lost) writes.drop.push({ cluster, addon: name, reason: 'ClusterGone' });
  if (canonicalJson(status) !== canonicalJson(before)) writes.status.push({ addon: name, status });
  if (deleting === true && targets.length + held.length === 0) writes.released.push(name);
  return least;
}

function planOf(run: Rollout): AddonPlan {
  const { fleet, strategy, begun, orders } = run;
  const targets: Target[] = [];
  const dropped: Target[] = [];
  let recorded = 0;
  for (const cluster of fleet.clusters.values()) {
    const target = targetOf(run, cluster);
    if (target === undefined) continue;
    if (target.record !== undefined) recorded += 1;
    (target.drop === undefined ? targets : dropped).push(target);
  }
  const { records } = run;
  const held = recorded === records.size ? [] : [...records.keys()].filter((name) => !fleet.clusters.has(name));
  brake(run, targets, held);
  const lost = run.brake === undefined ? held.splice(0) : [];
  // A cluster that is deleted leaves all add-ons, however far the rollout of each is, and one on which an add-on has failed leaves that.
  // If it is to have it again, its removal under way does not free it from the stages.
  const isStaged = (target: Target): boolean =>
    !run.isFrozen && target.cluster.deleting === undefined && !hasFailed(target);
  const staged: Target[] = [];
  for (const target of targets) {
    if (isStaged(target)) staged.push(target);
    else if (target.wants || !isUnderRemoval(target)) target.hold = holdOf(target, ANY_PLACE);
  }
  const state = { run, targets, dropped, lost, held };
  if (run.isFrozen) return { ...state, stopped: begun.stopped, reached: begun.reached, failed: run.failed };
  const sizes = { rules: strategy.groups ?? [], size: strategy.groupSize, keepsEmpty: run.rules !== 'ocm' };
  if (run.rolledBack) run.wentBack ??= GONE_BACK;
  const groups = groupsOf(staged, sizes);
  const unresolved = unresolvedOf(run, staged);
  const none = { failed: { clusters: {} }, assumed: 0 };
  const { failed, assumed } = run.keepsFailed ? failedIn(groups, unresolved, run.failed) : none;
  // Open Cluster Management does not go back: how that is done is ours.
  const { reached, stopped } =
    run.rules === 'ocm' && !run.rolledBack
      ? advanceAsOcm(staged, run, sizes)
      : advance(groups, strategy, {
          rules: run.rules,
          reached: begun.reached,
          unresolved: unresolved.map(([cluster, group]) => ({
            group,
            isGone: !staged.some((one) => nameOf(one) === cluster),
          })),
          assumed,
          stopped: run.rolledBack ? (backFailureIn(staged) ?? run.wentBack) : undefined,
          mayStayUnproven: (group) => orders !== undefined && letsStayUnproven(run, group, orders),
          hold: holdOf,
          unproven: (group) => unprovenNote(run, group),
        });
  if (stopped === undefined || run.rolledBack || strategy.onFailure !== 'Rollback') {
    holdForOrders(run, targets);
    return { ...state, stopped, reached, failed };
  }
  run.rolledBack = true;
  const { cluster, record } = staged.find(({ state }) => isFailure(state)) ?? {};
  const why = [GONE_BACK, stopped, cluster?.name, whyOf(record)?.slice(0, MAX_WHY)];
  run.wentBack = why.filter((one) => one !== undefined).join(': ');
  return planOf(run);
}

/** What waits for an approval says so; and what has failed, and is not tried again although that was ordered, says why. */
function holdForOrders(run: Rollout, targets: readonly Target[]): void {
  for (const target of targets) {
    if (asks(target.record) && target.isAsWanted && !target.wants) {
      const note = voidNote(run.ordered, ({ deletions }) => deletions === true);
      target.hold ??= { reason: DELETIONS, message: `${whyOf(target.record) ?? ''}${note}`, skips: true, asks: true };
    }
    if (!isFailure(target.state) || target.wants) continue;
    const message = run.ordered.unheeded.retry ?? retryNote(run, target.record);
    if (message !== undefined) target.hold ??= { reason: 'Order', message, skips: true, asks: true };
  }
}

/** Says that clusters could not go back: the first of them, why, and what to do. */
function backFailureIn(targets: readonly Target[]): string | undefined {
  const [first, ...others] = targets.filter(({ backFailure }) => backFailure !== undefined);
  if (first?.backFailure === undefined) return undefined;
  const where = others.length === 0 ? nameOf(first) : `${nameOf(first)} and ${others.length} more`;
  const why = first.backFailure.slice(0, MAX_WHY);
  return `going back to what was known as good failed on ${where}: ${why}; remove the cause, then retry the add-on`;
}

/** The same by the rules of Open Cluster Management, in which a removal needs no place. */
function advanceAsOcm(
  targets: readonly Target[],
  { strategy }: Rollout,
  sizes: Grouping,
): { readonly stopped: string | undefined; readonly reached: number } {
  const staged = targets.filter((target) => {
    return !isRemoval(target) && (target.wants || target.record?.spec.action !== 'Remove');
  });
  const sorted = staged.toSorted((a, b) => compareNames(a.cluster.name, b.cluster.name, 'ocm'));
  const groups = groupsOf(sorted, sizes);
  const named = groups.map((group): Group<string> => ({ ...group, members: group.members.map(nameOf) }));
  const known = staged.filter(({ record }) => record !== undefined);
  const batch = ocmBatch(
    named,
    strategy,
    known.map((target) => {
      const state = target.wants ? 'ToApply' : target.own;
      return { cluster: nameOf(target), state, age: target.age };
    }),
  );
  const stopped = batch.breached ? 'more clusters have failed than may' : undefined;
  const groupNames = new Map(groups.flatMap(({ name, members }) => members.map((one) => [one, name] as const)));
  const begun = new Set(batch.rollout);
  for (const target of targets) {
    const group = groupNames.get(target) ?? '';
    const isIn = isRemoval(target) || begun.has(nameOf(target));
    // By the rules of Open Cluster Management, what has a place keeps it.
    const place = isIn ? { ...ANY_PLACE, group } : { ...ANY_PLACE, group, stopped, free: 0 };
    if (target.wants) target.hold = holdOf(target, place);
  }
  return { stopped, reached: 0 };
}

function nameOf({ cluster }: Target): string {
  return cluster.name;
}

function specOf(target: Target): ClusterAddonSpec {
  const { run, cluster, record, action, goal, isGood } = target;
  const { contents, fleet } = run;
  const spec = record?.spec;
  const isRemoved = isRemoval(target);
  const identity = identityOn(run, cluster);
  const content = goal ?? (isRemoved ? spec : contents.contentOf(cluster, record));
  if (content === undefined || typeof content === 'string') throw new TypeError('a target without content has begun');
  const others = fleet.rivals(run, cluster).map((rival) => rival.record?.spec.revision);
  const revisions = [spec?.revision, obeyedOf(record), ...others];
  const prune = isRemoved ? undefined : pruningOf(run, goal !== undefined);
  const knownGood = action === 'create' ? undefined : isGood && goal === undefined ? spec : spec?.knownGood;
  return {
    ...contentIn(content),
    revision: Math.max(0, ...revisions.map((revision = 0) => revision)) + 1,
    identity: isRemoved ? (spec?.identity ?? '') : identity,
    action: isRemoved ? 'Remove' : 'Install',
    // One order tries once: it may be of the next second.
    startedAt: Math.max(fleet.now, run.retry),
    ...(knownGood && { knownGood: contentIn(knownGood) }),
    ...(prune && { prune }),
    ...(isRemoved && removalIn(target)),
  };
}

/** How a removal goes, for who does it. */
function removalIn(target: Target): Pick<ClusterAddonSpec, 'remove'> {
  const { remove } = target.run.addon;
  if (remove === undefined) return {};
  const { onUnselect: _onUnselect, ...others } = remove;
  return { remove: { ...others, ...(isLeft(target) && { onFailure: 'Leave' }) } };
}

/** After a hub was restored, clusters have obeyed higher revisions than it knows, and refuse what is not higher than these. */
function obeyedOf(record: ClusterAddon | undefined): number | undefined {
  const { revision = 0 } = record?.status?.applied ?? {};
  return revision <= MAX_CLAIMED ? revision : undefined;
}

function contentIn({ source, version, values, specHash, inputs }: AddonContent): AddonContent {
  return { source, ...(version !== undefined && { version }), values, specHash, ...(inputs && { inputs }) };
}

/** The clusters of an add-on that wait, each with its first reason. A status has only the first of them. */
export function waitingIn({ run, targets, held }: AddonPlan, most = Infinity): readonly Waiting[] {
  const { addon, begun, fleet, isFrozen } = run;
  const before = new Map(addon.status?.waiting.map((one) => [one.cluster, one]));
  const waiting: Waiting[] = [];
  const add = (cluster: string, reason: string, message: string, from = begun.since): void => {
    const last = before.get(cluster);
    const since = last === undefined ? from : last.reason === reason ? last.since : fleet.now;
    waiting.push({ cluster, reason, message, since });
  };
  for (const { cluster, hold } of targets) {
    if (waiting.length >= most) break;
    const from = isFrozen ? fleet.now : cluster.available ? undefined : fleet.past(cluster.since);
    if (hold) add(cluster.name, hold.reason, hold.message, from);
  }
  for (const cluster of held) if (waiting.length < most) add(cluster, 'Removals', run.brake ?? '');
  return waiting;
}

/** What begins, and what was not there for long enough, with when its success was first seen. */
function soakingIn({ run, targets }: AddonPlan): Pick<FleetAddonStatus, 'soaking'> {
  if (run.isFrozen) return run.begun.soaking ? { soaking: run.begun.soaking } : {};
  if (run.seen === undefined) return {};
  const names = new Names<number>();
  for (const target of targets) {
    const { cluster, record, own, isGood } = target;
    const isNew = begins(target);
    if (isNew ? isRemoval(target) : isGood || record?.spec.action !== 'Install') continue;
    const isSuccess = !isNew && own === 'Succeeded';
    // What has succeeded before its cluster had a name here is as old as it says.
    if (!isSuccess || run.seen.has(cluster.name)) names.add([cluster.name, isSuccess ? seenAt(run, cluster) : 0]);
  }
  return Object.keys(names.clusters).length > 0 ? { soaking: names.clusters } : {};
}

/** The status after this step. */
function statusOf(plan: AddonPlan): FleetAddonStatus {
  const { run, targets, lost, held, stopped, reached, failed } = plan;
  const { addon, approvedAt, begun, contents, isFrozen, rolledBack } = run;
  const counts: Partial<Record<State, number>> = {};
  const reasons: Record<string, number> = held.length > 0 ? { Removals: held.length } : {};
  let asking: Hold | undefined;
  const batch: string[] = [];
  const removed = [...lost];
  for (const target of targets) {
    const { hold } = target;
    let { state } = target;
    if (begins(target)) state = isRemoval(target) ? 'Removing' : 'Progressing';
    else if (state === 'ToApply' && hold?.skips === true) state = 'Skipped';
    if (begins(target) && isRemoval(target) && !isUnderRemoval(target) && !isLeft(target))
      removed.push(target.cluster.name);
    if ((target.holds || begins(target)) && batch.length < MAX_NAMES) batch.push(target.cluster.name);
    counts[state] = (counts[state] ?? 0) + 1;
    if (hold) reasons[hold.reason] = (reasons[hold.reason] ?? 0) + 1;
    // What holds others, too, is asked first.
    if (hold?.asks === true && (asking === undefined || (asking.skips && !hold.skips))) asking = hold;
  }
  const brake = held.length > 0 ? run.brake : undefined;
  const asks = [asking?.message ?? brake, run.ordered.unheeded.rollback, addon.idle]
    .filter((one) => one !== undefined)
    .join('; ');
  // An approval covers as many as it names.
  const unapproved = withRemoved(run, removed.slice(Math.max(0, (run.orders?.removals ?? 0) - run.removed)));
  return {
    observedGeneration: isFrozen ? (begun.observedGeneration ?? 0) : addon.generation,
    revision: isFrozen ? (begun.revision ?? '') : contents.revision,
    since: begun.since,
    reached: Math.max(begun.reached, reached),
    rolledBack,
    ...soakingIn(plan),
    ...((Object.keys(failed.clusters).length > 0 || failed.more !== undefined) && {
      failed: { retry: Math.max(run.retry, begun.failed?.retry ?? 0), ...failed },
    }),
    ...(run.retry > 0 && { retry: { at: run.retry, seen: run.retrySeen } }),
    ...(approvedAt !== undefined && {
      removals: {
        at: approvedAt,
        begun: run.removed + removed.length,
        ...(removed.length > 0 && { clusters: removed.slice(0, MAX_NAMES) }),
      },
    }),
    ...(unapproved.length > 0 && { removed: unapproved }),
    ...(stopped !== undefined && { stopped }),
    ...(rolledBack && run.wentBack !== undefined && stopped !== run.wentBack && { wentBack: run.wentBack }),
    ...(asks !== '' && { asks }),
    counts,
    reasons,
    batch,
    waiting: waitingIn(plan, MAX_WAITING),
  };
}
