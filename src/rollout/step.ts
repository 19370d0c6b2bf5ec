/** One step of a whole fleet: what is written now, and why the rest waits. Pure. */
import { counted } from '../core/counted.ts';
import { canonicalJson } from '../core/digest.ts';
import { advance, type Advance, type Hold } from './batch.ts';
import { Memo } from './content.ts';
import type { ClusterAddonSpec, Content, FleetAddonStatus, Observed, Waiting, Writes } from './fleet.ts';
import { holdOf, isRemoval } from './gates.ts';
import { groupsOf } from './groups.ts';
import { sizeOf } from './limits.ts';
import type { State } from './strategy.ts';
import { Fleet, targetOf, type Run, type Target } from './target.ts';

const MOST_NAMES = 100;
const MOST_WAITING = 20;

/**
 * What a fleet needs at `now`, in seconds since 1970. The same state gives the same writes, and no more once they are made. A list
 * that is incomplete, or has no cluster although add-ons are installed, writes nothing.
 */
export function step(observed: Observed, now: number, memo: Memo = new Memo()): Writes {
  const writes: Writes = { put: [], drop: [], status: [], released: [], detached: [], waiting: [] };
  const { complete, clusters, clusterAddons } = observed;
  if (!complete || (clusters.length === 0 && clusterAddons.length > 0)) return writes;
  const fleet = new Fleet(observed, now, memo);
  let recheckAfter = Infinity;
  for (const run of fleet.runs.values()) recheckAfter = Math.min(recheckAfter, stepAddon(run, writes));
  for (const { cluster, addon } of clusterAddons) if (!fleet.runs.has(addon)) writes.detached.push({ cluster, addon });
  if (writes.waiting.some(({ reason }) => reason === 'Window')) recheckAfter = Math.min(recheckAfter, 60 - (now % 60));
  return { ...writes, ...(recheckAfter < Infinity && { recheckAfter }) };
}

/** Returns the seconds after which time alone changes something. */
function stepAddon(run: Run, writes: Writes): number {
  const { addon, strategy } = run;
  let plan = planOf(run);
  if (plan.stopped !== undefined && !run.rolledBack && strategy.onFailure === 'Rollback') {
    run.rolledBack = true;
    plan = planOf(run);
  }
  for (const target of plan.started) {
    writes.put.push({ cluster: target.cluster.name, addon: addon.name, spec: specOf(target) });
  }
  writes.drop.push(...plan.dropped);
  const waiting = waitingOf(run, plan);
  for (const one of waiting) writes.waiting.push({ addon: addon.name, ...one });
  const status = statusOf(run, plan, waiting);
  if (canonicalJson(status) !== canonicalJson(addon.status ?? {})) writes.status.push({ addon: addon.name, status });
  if (addon.deleting === true && plan.targets.length + plan.gone.length === 0) writes.released.push(addon.name);
  return plan.targets.reduce(
    (least, { wants, recheckAfter }) => (wants ? least : Math.min(least, recheckAfter)),
    Infinity,
  );
}

interface Plan extends Advance<Target> {
  readonly targets: readonly Target[];
  readonly dropped: Writes['drop'];
  /** Clusters that no longer exist, and whose records the brake holds. */
  readonly gone: readonly string[];
}

function planOf(run: Run): Plan {
  const { fleet, addon, strategy, begun } = run;
  const targets: Target[] = [];
  const dropped: Writes['drop'] = [];
  for (const cluster of fleet.clusters.values()) {
    const target = targetOf(run, cluster);
    if (target?.drop !== undefined) dropped.push({ cluster: cluster.name, addon: addon.name, reason: target.drop });
    else if (target !== undefined) targets.push(target);
  }
  const names = [...(fleet.records.get(addon.name)?.keys() ?? [])];
  const gone = names.filter((cluster) => !fleet.clusters.has(cluster));
  run.brake = brakeOf(run, targets, gone.length);
  if (run.brake === undefined) {
    for (const cluster of gone.splice(0)) dropped.push({ cluster, addon: addon.name, reason: 'ClusterGone' });
  }
  const groups = groupsOf(targets, { rules: strategy.groups ?? [], size: strategy.groupSize });
  const approved = run.orders?.groups;
  const stopped = run.rolledBack ? 'it has gone back to what was known as good' : undefined;
  return {
    ...advance(groups, strategy, { reached: begun.reached, stopped, approved, hold: holdOf }),
    targets,
    dropped,
    gone,
  };
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

function waitingOf({ addon, begun, fleet, brake = '' }: Run, { waiting, gone }: Plan): readonly Waiting[] {
  const before = new Map(addon.status?.waiting.map((one) => [one.cluster, one]));
  const wait = (cluster: string, { reason, message }: Omit<Hold, 'skips'>, from = begun.since): Waiting => {
    const last = before.get(cluster);
    const since = last === undefined ? from : last.reason === reason ? last.since : fleet.now;
    return { cluster, reason, message, since };
  };
  return [
    ...waiting.map(([{ cluster }, hold]) => {
      return wait(cluster.name, hold, hold.reason === 'Unreachable' ? cluster.since : undefined);
    }),
    ...gone.map((cluster) => wait(cluster, { reason: 'Removals', message: brake })),
  ];
}

/** The status after this step. */
function statusOf(run: Run, plan: Plan, waiting: readonly Waiting[]): FleetAddonStatus {
  const { addon, contents, orders, rolledBack } = run;
  const { targets, started, dropped, stopped } = plan;
  const begun = new Set(started);
  const skipped = new Set(plan.waiting.filter(([, { skips }]) => skips).map(([target]) => target));
  const counts: Partial<Record<State, number>> = {};
  for (const target of targets) {
    const now = isRemoval(target) ? 'Removing' : 'Progressing';
    const waits = target.state === 'ToApply' && skipped.has(target) ? 'Skipped' : target.state;
    const state = begun.has(target) ? now : waits;
    counts[state] = (counts[state] ?? 0) + 1;
  }
  const batch = targets.filter((target) => target.holds || begun.has(target));
  const removed = started.filter(isRemoval).length + dropped.filter(({ reason }) => reason === 'ClusterGone').length;
  return {
    observedGeneration: addon.generation,
    revision: contents.revision,
    since: run.begun.since,
    reached: Math.max(run.begun.reached, plan.reached),
    rolledBack,
    ...(orders?.removals !== undefined && { removals: { at: orders.at, begun: begunRemovals(run) + removed } }),
    ...(stopped !== undefined && { stopped }),
    counts,
    batch: batch.slice(0, MOST_NAMES).map(({ cluster }) => cluster.name),
    waiting: waiting.slice(0, MOST_WAITING),
  };
}
