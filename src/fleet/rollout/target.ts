/** An add-on on one cluster: in which state it is, and what is to happen there. Pure. */
import { removalAction } from '../../cluster/channel/helm-release.ts';
import { groupBy } from '../../core/group-by.ts';
import { isObject } from '../../core/json.ts';
import { actionOf, type RolloutAction, type Recorded } from './action.ts';
import type { BatchMember } from './batch.ts';
import { alternativesOf, Contents, type Memo } from './content.ts';
import type {
  Cluster,
  ClusterAddon,
  ClusterAddonSpec,
  AddonContent,
  DropReason,
  FleetAddon,
  FleetAddonStatus,
  Observed,
} from './fleet.ts';
import { circleOf } from './depends.ts';
import { compareNames, selects, type Labels } from './groups.ts';
import { blocks, leaves } from './leaving.ts';
import { parseTimeout, type Rules } from './limits.ts';
import { failedBefore } from './named-failures.ts';
import { firstSeen, laterThanRetry, MAX_AHEAD, ordersAt } from './orders.ts';
import { problemOf, removalLimitsOf } from './problem.ts';
import { asks, pruningOf } from './pruning.ts';
import { isFailure, settle, timesOf, type Settled, type State } from './strategy.ts';
import { reportOf, seenAt, whyOf } from './reported.ts';
import { closedWindows, windowProblem, type Window } from './windows.ts';

interface Rival {
  readonly name: string;
  /** Does it select the cluster? */
  readonly wants: boolean;
  readonly record: ClusterAddon | undefined;
}
const NO_RIVALS: readonly Rival[] = [];

const UNHEALTHY = 'it has not become healthy';
export const SILENT = 'the cluster does not answer';

/** The objects of a fleet by name, clusters and add-ons in natural order. */
export class Fleet {
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly runs: ReadonlyMap<string, Rollout>;
  /** Records whose add-on has vanished. */
  readonly detached: ClusterAddon[] = [];
  readonly #frozen: readonly Rollout[];
  readonly now: number;
  readonly heardSince: number;
  readonly #byIdentity: ReadonlyMap<string, readonly { readonly run: Rollout }[]>;
  readonly #closed = new Map<string, string | undefined>();
  readonly #unreadable = new Map<string, string | undefined>();

  constructor({ clusters, addons, clusterAddons, heardSince = 0 }: Observed, now: number, memo: Memo) {
    this.now = now;
    this.heardSince = heardSince;
    this.clusters = byName(clusters);
    const named = byName(addons);
    this.runs = new Map([...named].map(([name, addon]) => [name, runOf(this, addon, { addons: named, memo })]));
    for (const record of clusterAddons) {
      const run = this.runs.get(record.addon);
      if (run === undefined) this.detached.push(record);
      else run.records.set(record.cluster, record);
    }
    const all = [...this.runs.values()].flatMap((run) => identitiesOf(run).map((identity) => ({ identity, run })));
    this.#byIdentity = groupBy(all, ({ identity }) => identity);
    this.#frozen = [...this.runs.values()].filter(({ isFrozen }) => isFrozen);
  }

  /** Other add-ons of the same identity. */
  rivals(own: Rollout, cluster: Cluster): readonly Rival[] {
    const identity = identityOn(own, cluster);
    const all = this.#byIdentity.get(identity) ?? [];
    if (all.length < 2) return NO_RIVALS;
    const others = all.filter(({ run }) => run !== own && identityOn(run, cluster) === identity);
    return others.map(({ run: { addon, records } }) => {
      const record = records.get(cluster.name);
      const has = record?.spec.identity === identity && record.spec.action === 'Install';
      return { name: addon.name, wants: isSelected(addon, cluster, record), record: has ? record : undefined };
    });
  }

  /** Who takes over what leaves a cluster, or may do so: it cannot be read whether it will. */
  heir(own: Rollout, cluster: Cluster): { readonly name: string; readonly isKnown: boolean } | undefined {
    const known = this.rivals(own, cluster).find(({ name, wants }) => wants && this.runs.get(name)?.isFrozen === false);
    if (known !== undefined || cluster.deleting !== undefined) return known && { name: known.name, isKnown: true };
    const identity = identityOn(own, cluster);
    const frozen = this.#frozen.find(({ addon, records }) => {
      if (addon === own.addon || records.has(cluster.name)) return false;
      if (addon.identity !== addon.name && addon.identity !== identity) return false;
      return addon.clusterSelector === undefined || isSelected(addon, cluster, undefined);
    });
    return frozen && { name: frozen.addon.name, isKnown: false };
  }

  /** A time by the clock of a site. Ahead, it counts as now; far ahead, it says nothing: what counts as now never becomes older. */
  past(since: number | undefined): number | undefined {
    return since === undefined || since > this.now + MAX_AHEAD ? undefined : Math.min(since, this.now);
  }

  /** Why windows can never open. */
  unreadable(windows: readonly Window[] = []): string | undefined {
    return saidOf(windows, this.#unreadable, () => windows.map(windowProblem).find((problem) => problem !== undefined));
  }

  /** Why nothing may begin now, because of windows. */
  closed(windows: readonly Window[] = []): string | undefined {
    return saidOf(windows, this.#closed, () => closedWindows(windows, this.now));
  }
}

/** Many clusters have the same windows. */
function saidOf<Said>(windows: readonly Window[], known: Map<string, Said>, say: () => Said): Said | undefined {
  if (windows.length === 0) return undefined;
  const key = JSON.stringify(windows);
  if (!known.has(key)) known.set(key, say());
  return known.get(key);
}

function byName<T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<string, T> {
  const sorted = items.toSorted((a, b) => compareNames(a.name, b.name, 'native'));
  return new Map(sorted.map((item) => [item.name, item]));
}

/** What cannot be read also stays where it is. */
function isSelected(addon: FleetAddon, { labels, deleting }: Cluster, record: ClusterAddon | undefined): boolean {
  if (addon.deleting === true || deleting !== undefined) return false;
  const isKept = addon.problem !== undefined && record?.spec.action === 'Install';
  return isKept || (addon.clusterSelector !== undefined && selects(addon.clusterSelector, labels));
}

/** What cannot be read has the identity that it has on a cluster. */
export function identityOn({ addon, contents, records }: Rollout, cluster: Cluster): string {
  const record = records.get(cluster.name);
  if (addon.problem === undefined) return contents.identityOn(cluster, record);
  return record?.spec.identity ?? addon.identity;
}

function identitiesOf({ addon, records }: Rollout): readonly string[] {
  const others = alternativesOf(addon).flatMap(({ identity }) => identity ?? []);
  if (addon.problem === undefined) return [...new Set([addon.identity, ...others])];
  return [...new Set([addon.identity, ...[...records.values()].map(({ spec }) => spec.identity)])];
}

/** What is the same for all clusters of an add-on. Orders that do not count for what is rolled out, or not yet, are left out. */
export type Rollout = ReturnType<typeof runOf>;

type Begun = Partial<FleetAddonStatus> & Pick<FleetAddonStatus, 'since' | 'reached' | 'rolledBack'>;

function runOf(
  fleet: Fleet,
  addon: FleetAddon,
  { addons, memo }: { readonly addons: ReadonlyMap<string, FleetAddon>; readonly memo: Memo },
) {
  const { status } = addon;
  const contents = new Contents(addon, memo);
  const isSame = status?.revision === contents.revision && status.observedGeneration === addon.generation;
  const isFrozen = addon.problem !== undefined && addon.deleting !== true;
  const fresh = { since: fleet.now, reached: 0, rolledBack: false };
  const { since, ...stored } = (isFrozen || isSame ? status : undefined) ?? fresh;
  // The clock may have been set back: no order is to be early, or older than what has begun, until it is there again.
  const begun: Begun = { ...stored, since: Math.min(since, fleet.now) };
  const { orders, ...ordered } = ordersAt(addon, begun.since, fleet.now);
  // What cannot be read may have an approval that cannot be read: the one that was in force is kept, with what it has let pass.
  const approvedAt = orders?.removals !== undefined ? orders.at : isFrozen ? begun.removals?.at : undefined;
  const retry = orders?.retry ?? 0;
  const rules: Rules = addon.compat ?? 'native';
  const wrong = problemOf(addon);
  const strategy = wrong === undefined ? (addon.rollout ?? {}) : removalLimitsOf(addon.rollout);
  const times = timesOf(strategy, rules);
  const timeout = (wrong === undefined && addon.remove?.timeout) || '30m';
  const records = new Map<string, ClusterAddon>();
  let first: { readonly name: string | undefined } | undefined;
  return {
    fleet,
    addon,
    contents,
    /** Name of the first cluster whose values cannot be rendered, whatever it reports. */
    unrendered: (): string | undefined => {
      first ??= { name: firstProblem(fleet, addon, contents, records) };
      return first.name;
    },
    problem: addon.problem ?? wrong,
    /** What is to be rolled out is unknown: nothing begins but removals from clusters that are deleted, and its rollout stays as it is. */
    isFrozen,
    strategy,
    begun,
    /** By cluster. */
    records,
    /** Kept where sites report by themselves, and something must last. */
    seen: fleet.heardSince > 0 && times.soak > 0 ? new Map(Object.entries(status?.soaking ?? {})) : undefined,
    /** From the add-on over those that it depends on back to itself. */
    circle: circleOf(addon.name, (name) => addons.get(name)?.dependsOn),
    rules,
    times,
    removalTimes: { soak: 0, deadline: parseTimeout(timeout) },
    orders,
    /** Why other orders do not count, and when one of a later time does. */
    ordered,
    /** When the present approval of removals was given. */
    approvedAt,
    /** How many removals have begun under the present approval; the brake counts them. */
    removed: 0,
    retry,
    retrySeen: firstSeen(retry, begun, fleet.now),
    /** Failures that count although their clusters go: a bad version must not spread because one is deleted. */
    failed: failedBefore(addon, begun, retry),
    /** By the rules of Open Cluster Management, only clusters that are there count; and without a budget, none does. */
    keepsFailed: rules !== 'ocm' && (strategy.type ?? 'All') !== 'All',
    rolledBack: begun.rolledBack || (!isFrozen && orders?.rollback !== undefined),
    /** Why it has gone back, if no person has ordered it. */
    wentBack: begun.rolledBack ? (begun.wentBack ?? begun.stopped) : undefined,
    removalsWithin: strategy.removalsWithin ?? '24h',
    /** Removals within that time without an approval. */
    lately: [] as NonNullable<FleetAddonStatus['removed']>,
    /** Why no removal may begin, and when fewer count. */
    brake: undefined as string | undefined,
    brakedUntil: Infinity,
  };
}

function firstProblem(
  { clusters }: Fleet,
  addon: FleetAddon,
  contents: Contents,
  records: ReadonlyMap<string, ClusterAddon>,
): string | undefined {
  const chosen = [...clusters.values()].filter((cluster) => isSelected(addon, cluster, records.get(cluster.name)));
  return chosen
    .toSorted((a, b) => compareNames(a.name, b.name, 'caaph'))
    .find((cluster) => contents.neverHas(cluster, records.get(cluster.name)))?.name;
}

export interface Target extends BatchMember {
  readonly run: Rollout;
  readonly cluster: Cluster;
  readonly labels: Labels;
  readonly record: ClusterAddon | undefined;
  readonly action: RolloutAction;
  /** Known good content that the cluster goes back to. */
  readonly goal: AddonContent | undefined;
  /** Why it could not go back to what was known as good. */
  readonly backFailure: string | undefined;
  /** Its record is about what is wanted now. */
  readonly isAsWanted: boolean;
  /** What is there has lasted long enough. */
  readonly isGood: boolean;
  /** The state of its record, which also counts while the cluster does not answer, and the seconds since it began. */
  readonly own: State;
  readonly age: number;
  /** Why the record is deleted, without any other action. */
  readonly drop: DropReason | undefined;
  readonly recheckAfter: number;
}

export function isRemoval({ action }: Target): boolean {
  return action === 'delete' || action === 'reinstall';
}

export function isUnderRemoval({ record }: Target): boolean {
  return record?.spec.action === 'Remove';
}

export function begins({ wants, hold }: Target): boolean {
  return wants && hold === undefined;
}

/** Undefined for a cluster that neither has nor wants the add-on. */
export function targetOf(run: Rollout, cluster: Cluster): Target | undefined {
  const { addon, orders } = run;
  const record = run.records.get(cluster.name);
  const selected = isSelected(addon, cluster, record);
  if (record === undefined && !selected) return undefined;
  const spec = record?.spec;
  const own = settledOf(run, cluster, record);
  const isGood = own.state === 'Succeeded' && !own.holds && spec?.action === 'Install';
  const isRemoved = spec?.action === 'Remove' && own.state === 'Succeeded';
  const isKept = run.isFrozen && selected && record !== undefined && !isRemoved;
  const content = record && selected && !isKept ? run.contents.contentOf(cluster, record) : undefined;
  const isAsWanted = typeof content === 'object' && content.specHash === spec?.specHash;
  const isRetried = run.retry > 0 && isFailure(own.state) && laterThanRetry(run, record) === undefined;
  const goesBack = run.rolledBack && isAsWanted && (orders?.rollback !== undefined || !isGood);
  const leaves = goesBack && spec?.knownGood?.specHash !== spec?.specHash ? spec?.knownGood : undefined;
  // What was good failed when it returned, after this rollout had begun.
  const isBackFailed =
    run.rolledBack &&
    selected &&
    !isAsWanted &&
    isFailure(own.state) &&
    spec?.action === 'Install' &&
    spec.knownGood !== undefined &&
    spec.startedAt >= run.begun.since;
  const goal = leaves ?? (isBackFailed && isRetried ? spec : undefined);
  const isApproved = isAsWanted && asks(record) && pruningOf(run, false) !== spec?.prune;
  const changed = goal !== undefined || !isAsWanted || isRetried || isApproved;
  const recorded: Recorded | undefined = spec && {
    removal: spec.action === 'Install' ? undefined : isRemoved ? 'done' : isRetried ? 'again' : 'begun',
    installed: isGood || spec.knownGood !== undefined,
    isOther: spec.identity !== identityOn(run, cluster) || isOtherChart(run, cluster, spec),
    changed,
  };
  const action = isKept ? 'none' : actionOf(selected, addon.mode === 'InstallOnce', recorded);
  const wants = action !== 'none';
  const isSilent = !cluster.available;
  const isFailed = isBackFailed || (isFailure(own.state) && !wants && spec?.action === 'Install');
  const failure = isBackFailed ? (whyOf(record) ?? UNHEALTHY) : undefined;
  return {
    run,
    cluster,
    record,
    action,
    goal,
    backFailure: leaves === undefined ? failure : record?.backFailure,
    isAsWanted,
    isGood,
    own: own.raw,
    age: own.age,
    wants,
    isProven: isGood && !wants,
    isMeant: selected,
    labels: cluster.labels,
    drop: record && !selected ? dropReason(run, cluster, record, own.state) : undefined,
    state: isSilent && !isFailed ? 'Unreachable' : wants && !isBackFailed ? 'ToApply' : own.state,
    holds: own.holds && (!isSilent || own.isLost),
    recheckAfter: Math.min(
      !isSilent || own.isLost || spec?.action === 'Remove' ? own.recheckAfter : Infinity,
      timeToLeave(run, cluster) || Infinity,
    ),
    hold: undefined,
  };
}

/** By the rules of the Helm add-on provider, a chart of another name or repository is not a version of the same. */
function isOtherChart({ rules, contents }: Rollout, cluster: Cluster, { source }: ClusterAddonSpec): boolean {
  const [before, next] = [source, contents.sourceOf(cluster)?.source].map((one) => one?.['chart']);
  if (rules !== 'caaph' || !isObject(before) || !isObject(next)) return false;
  return ['repoURL', 'oci', 'name'].some((field) => before[field] !== next[field]);
}

interface Standing extends Settled {
  /** Before time is considered. */
  readonly raw: State;
  readonly age: number;
  /** It ceased to answer while something that began before was under way, or had not lasted long enough. */
  readonly isLost: boolean;
}

const UNTRIED = { state: 'ToApply', holds: false, recheckAfter: Infinity } as const;
const NEW: Standing = { ...UNTRIED, raw: 'ToApply', age: 0, isLost: false };

/** The state of a record by itself: that of the agent if it is about what is wanted. */
function settledOf(run: Rollout, cluster: Cluster, record: ClusterAddon | undefined): Standing {
  const { fleet, times, removalTimes, rules } = run;
  if (record === undefined) return NEW;
  const { spec } = record;
  const report = reportOf(record);
  const isInstall = spec.action === 'Install';
  // Offline, a success does not become older, and then lasts from the return; a removal must end.
  const isFrozen = isInstall && !cluster.available;
  const turned = fleet.past(cluster.since);
  const now = isFrozen ? (turned ?? fleet.now) : fleet.now;
  const back = isFrozen ? 0 : (turned ?? 0);
  const { state: said } = report ?? NEW;
  const isFinal = said === 'Succeeded' || said === 'Skipped' || isFailure(said);
  const heard = isFinal ? 0 : fleet.heardSince;
  const state = isFinal ? said : isInstall ? 'Progressing' : 'Removing';
  const seen = state === 'Succeeded' ? seenAt(run, cluster) : 0;
  const since = Math.max(spec.startedAt, fleet.past(report?.since) ?? 0, back, heard, seen);
  const age = now - since;
  const settled = isInstall ? settle(state, age, times, rules) : settle(state, age, removalTimes, 'native');
  const isLost = rules !== 'ocm' && isFrozen && settled.holds && (cluster.since ?? 0) >= spec.startedAt;
  // Fields by name: in hundreds of thousands of objects, a spread costs more than all the rest of a step.
  if (!isLost) {
    return { state: settled.state, holds: settled.holds, recheckAfter: settled.recheckAfter, raw: state, age, isLost };
  }
  // It answered before: what began there may be why it does not any more, and the deadline decides.
  const lostFor = fleet.now - (isFinal ? (turned ?? since) : since);
  return { ...settle('Progressing', lostFor, times, rules), raw: state, age, isLost };
}

function dropReason(run: Rollout, cluster: Cluster, record: ClusterAddon, state: State): DropReason | undefined {
  const { spec } = record;
  const { addon, fleet } = run;
  const once = (addon.deleting === true || cluster.deleting !== undefined) && addon.mode === 'InstallOnce';
  const isThere = timeToLeave(run, cluster) > 0;
  if (removalAction({ once, cluster: isThere, release: true }) === 'drop-record') {
    return once ? 'Orphaned' : 'ClusterGone';
  }
  const isTaken = fleet.rivals(run, cluster).some((one) => one.wants && one.record !== undefined);
  if (spec.action === 'Install') return isTaken ? 'HandedOver' : undefined;
  if (state === 'Succeeded') return leaves(spec) || reportOf(record)?.reason === 'Orphaned' ? 'Orphaned' : 'Removed';
  return isFailure(state) && !blocks(addon, spec) ? 'Orphaned' : undefined;
}

/** Seconds until a deleted cluster that does not answer counts as gone: a removal there can neither begin nor end. */
function timeToLeave({ fleet, removalTimes }: Rollout, { deleting, available, since }: Cluster): number {
  if (deleting === undefined || available) return Infinity;
  return Math.max(0, Math.max(deleting, fleet.past(since) ?? 0, fleet.heardSince) + removalTimes.deadline - fleet.now);
}
