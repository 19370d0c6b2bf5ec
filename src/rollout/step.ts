/** One step of a whole fleet: what is written now, and why the rest waits. Pure. */
import { counted } from '../core/counted.ts';
import { canonicalJson } from '../core/digest.ts';
import { advance } from './batch.ts';
import { Memo } from './content.ts';
import type { ClusterAddonSpec, Content, FleetAddonStatus, Observed, Waiting, Writes } from './fleet.ts';
import { holdOf } from './gates.ts';
import { groupsOf } from './groups.ts';
import { sizeOf } from './limits.ts';
import type { State } from './strategy.ts';
import { begins, Fleet, isRemoval, targetOf, type Run, type Target } from './target.ts';

const MAX_NAMES = 100;
const MAX_WAITING = 20;

/**
 * What a fleet needs at `now`, in seconds since 1970. The same state gives the same writes, and no more once they are made. A list
 * that is incomplete, or has no cluster although add-ons are installed, writes nothing.
 */
export function step(observed: Observed, now: number, memo: Memo = new Memo()): Writes {
  const writes: Writes = { put: [], drop: [], status: [], released: [], detached: [] };
  if (!isUsable(observed)) return writes;
  const fleet = new Fleet(observed, now, memo);
  let recheckAfter = Infinity;
  for (const run of fleet.runs.values()) recheckAfter = Math.min(recheckAfter, stepAddon(run, writes));
  for (const { cluster, addon } of observed.clusterAddons) {
    if (!fleet.runs.has(addon)) writes.detached.push({ cluster, addon });
  }
  return { ...writes, ...(recheckAfter < Infinity && { recheckAfter }) };
}

/** All clusters that wait at `now`, each with its first reason; for one add-on if it is named. A status has only the first of them. */
export function waitingIn(
  observed: Observed,
  now: number,
  { memo = new Memo(), addon }: { readonly memo?: Memo; readonly addon?: string | undefined } = {},
): readonly (Waiting & { readonly addon: string })[] {
  const runs = isUsable(observed) ? [...new Fleet(observed, now, memo).runs.values()] : [];
  return runs
    .filter((run) => addon === undefined || addon === run.addon.name)
    .flatMap((run) => waitingOf(run, planOf(run), Infinity).map((one) => ({ addon: run.addon.name, ...one })));
}

function isUsable({ complete, clusters, clusterAddons }: Observed): boolean {
  return complete && (clusters.length > 0 || clusterAddons.length === 0);
}

/** Returns the seconds after which time alone changes something. */
function stepAddon(run: Run, writes: Writes): number {
  const { addon, fleet } = run;
  const plan = planOf(run);
  const status = statusOf(run, plan);
  let least = status.reasons['Window'] === undefined ? Infinity : 60 - (fleet.now % 60);
  for (const target of plan.targets) {
    if (begins(target)) writes.put.push({ cluster: target.cluster.name, addon: addon.name, spec: specOf(target) });
    if (!target.wants) least = Math.min(least, target.recheckAfter);
  }
  writes.drop.push(...plan.dropped);
  if (canonicalJson(status) !== canonicalJson(addon.status ?? {})) writes.status.push({ addon: addon.name, status });
  if (addon.deleting === true && plan.targets.length + plan.gone.length === 0) writes.released.push(addon.name);
  return least;
}

interface Plan {
  readonly targets: readonly Target[];
  readonly dropped: Writes['drop'];
  /** Clusters that no longer exist, and whose records the brake holds. */
  readonly gone: readonly string[];
  readonly stopped: string | undefined;
  readonly reached: number;
}

function planOf(run: Run): Plan {
  const { fleet, addon, strategy, begun, orders } = run;
  const targets: Target[] = [];
  const dropped: Writes['drop'] = [];
  for (const cluster of fleet.clusters.values()) {
    const target = targetOf(run, cluster);
    if (target?.drop !== undefined) dropped.push({ cluster: cluster.name, addon: addon.name, reason: target.drop });
    else if (target !== undefined) targets.push(target);
  }
  const gone = [...run.records.keys()].filter((cluster) => !fleet.clusters.has(cluster));
  run.brake = brakeOf(run, targets, gone.length);
  if (run.brake === undefined) {
    for (const cluster of gone.splice(0)) dropped.push({ cluster, addon: addon.name, reason: 'ClusterGone' });
  }
  const groups = groupsOf(targets, { rules: strategy.groups ?? [], size: strategy.groupSize });
  const { reached, stopped } = advance(groups, strategy, {
    reached: begun.reached,
    stopped: run.rolledBack ? 'it has gone back to what was known as good' : undefined,
    approved: orders?.groups ?? [],
    hold: holdOf,
  });
  if (stopped === undefined || run.rolledBack || strategy.onFailure !== 'Rollback') {
    return { targets, dropped, gone, stopped, reached };
  }
  run.rolledBack = true;
  return planOf(run);
}

/** Why no removal may begin: too many at once, without the approval of exactly so many. */
function brakeOf(run: Run, targets: readonly Target[], gone: number): string | undefined {
  const { addon, fleet, strategy, orders } = run;
  const isHandedOver = ({ cluster }: Target): boolean => fleet.rivals(addon, cluster).some(({ wants }) => wants);
  const wanted = gone + targets.filter((target) => isRemoval(target) && !isHandedOver(target)).length;
  const underWay = targets.filter(({ record, holds }) => holds && record?.spec.action === 'Remove').length;
  const total = targets.length + gone;
  const most = sizeOf(strategy.maxRemovals, total, Math.max(1, Math.ceil(total / 10)), 'native');
  const approved = (orders?.removals ?? 0) - begunRemovals(run);
  if (wanted === 0 || wanted + underWay <= most || wanted <= approved) return undefined;
  return `${counted(wanted + underWay, 'removal')} at once, and ${most} may: approve ${wanted}`;
}

/** How many removals have begun under the present approval. */
function begunRemovals({ begun, orders }: Run): number {
  return begun.removals?.at === orders?.at ? (begun.removals?.begun ?? 0) : 0;
}

function specOf(target: Target): ClusterAddonSpec {
  const { run, cluster, record, action, goal, isGood } = target;
  const { addon, contents, fleet } = run;
  const spec = record?.spec;
  const isRemoved = isRemoval(target);
  const content = goal ?? (isRemoved ? spec : contents.contentOf(cluster, record?.config));
  if (content === undefined || typeof content === 'string') throw new TypeError('a target without content has begun');
  const others = fleet.rivals(addon, cluster).map((rival) => rival.record?.spec.revision);
  const revisions = [spec?.revision, cluster.installed?.[addon.identity]?.revision, ...others];
  const knownGood = action === 'create' ? undefined : isGood && goal === undefined ? spec : spec?.knownGood;
  return {
    ...contentIn(content),
    revision: Math.max(0, ...revisions.map((revision = 0) => revision)) + 1,
    identity: isRemoved ? (spec?.identity ?? '') : addon.identity,
    action: isRemoved ? 'Remove' : 'Install',
    startedAt: fleet.now,
    ...(knownGood && { knownGood: contentIn(knownGood) }),
    ...(isRemoved && addon.remove && { remove: addon.remove }),
  };
}

function contentIn({ source, version, values, specHash }: Content): Content {
  return { source, ...(version !== undefined && { version }), values, specHash };
}

/** The first clusters that wait. */
function waitingOf({ addon, begun, fleet, brake = '' }: Run, { targets, gone }: Plan, most: number): Waiting[] {
  const before = new Map(addon.status?.waiting.map((one) => [one.cluster, one]));
  const waiting: Waiting[] = [];
  const add = (cluster: string, reason: string, message: string, from = begun.since): void => {
    const last = before.get(cluster);
    const since = last === undefined ? from : last.reason === reason ? last.since : fleet.now;
    if (waiting.length < most) waiting.push({ cluster, reason, message, since });
  };
  for (const { cluster, hold } of targets) {
    if (hold) add(cluster.name, hold.reason, hold.message, cluster.available ? undefined : cluster.since);
  }
  for (const cluster of gone) add(cluster, 'Removals', brake);
  return waiting;
}

/** The status after this step. */
function statusOf(run: Run, plan: Plan): FleetAddonStatus {
  const { addon, contents, orders, rolledBack } = run;
  const { targets, dropped, gone, stopped } = plan;
  const counts: Partial<Record<State, number>> = {};
  const reasons: Record<string, number> = gone.length > 0 ? { Removals: gone.length } : {};
  const batch: string[] = [];
  let removed = dropped.filter(({ reason }) => reason === 'ClusterGone').length;
  for (const target of targets) {
    const { hold } = target;
    let { state } = target;
    if (begins(target)) state = isRemoval(target) ? 'Removing' : 'Progressing';
    else if (state === 'ToApply' && hold?.skips === true) state = 'Skipped';
    if (begins(target) && isRemoval(target)) removed += 1;
    if ((target.holds || begins(target)) && batch.length < MAX_NAMES) batch.push(target.cluster.name);
    counts[state] = (counts[state] ?? 0) + 1;
    if (hold) reasons[hold.reason] = (reasons[hold.reason] ?? 0) + 1;
  }
  return {
    observedGeneration: addon.generation,
    revision: contents.revision,
    since: run.begun.since,
    reached: Math.max(run.begun.reached, plan.reached),
    rolledBack,
    ...(orders?.removals !== undefined && { removals: { at: orders.at, begun: begunRemovals(run) + removed } }),
    ...(stopped !== undefined && { stopped }),
    counts,
    reasons,
    batch,
    waiting: waitingOf(run, plan, MAX_WAITING),
  };
}
