/** Why an add-on waits on one cluster: one list, of which the first reason is the answer. Pure. */
import { compareTriples, parseTriple, type VersionRange } from '../../cluster/channel/range.ts';
import { canonicalJson } from '../../core/digest.ts';
import { compareVersions } from '../../core/ref.ts';
import { timeOf } from '../../core/time.ts';
import type { Hold, Slot, Unproven } from './batch.ts';
import type { Approval } from './fleet.ts';
import { compareNames, selectorKey } from './groups.ts';
import { isLeft } from './leaving.ts';
import { voidNote } from './orders.ts';
import { whyOf } from './reported.ts';
import { identityOn, isRemoval, isUnderRemoval, SILENT, targetOf, type Rollout, type Target } from './target.ts';

interface Gate {
  readonly reason: string;
  /** Others do not wait for a cluster that this holds. */
  readonly skips?: true;
  /** A person must approve what the message names. */
  readonly asks?: true;
  /** It also holds what goes back to a known good content. */
  readonly back?: true;
  /** Why a target waits, or nothing. */
  readonly why: (target: Target, place: Slot) => string | false | undefined;
}

const GATES: readonly Gate[] = [
  { reason: 'Invalid', skips: true, why: (target) => !isLeaving(target) && target.run.problem },
  { reason: 'Paused', skips: true, back: true, why: ({ run }) => run.addon.paused && 'the add-on is paused' },
  { reason: 'Paused', skips: true, back: true, why: ({ cluster }) => cluster.paused && 'the cluster is paused' },
  {
    reason: 'Unreachable',
    skips: true,
    back: true,
    why: ({ cluster }) => !cluster.available && SILENT,
  },
  { reason: 'Owner', skips: true, why: otherOwner },
  { reason: 'HandOver', skips: true, why: heir },
  {
    reason: 'Content',
    skips: true,
    why: ({ run, cluster, record, action }) => action !== 'delete' && run.contents.crossing(cluster, record),
  },
  { reason: 'Downgrade', skips: true, asks: true, why: downgrade },
  { reason: 'Dependents', skips: true, why: dependent },
  { reason: 'Removals', skips: true, asks: true, why: braked },
  { reason: 'Window', skips: true, why: ({ run: { fleet }, cluster }) => fleet.unreadable(cluster.windows) },
  { reason: 'Dependency', why: dependency },
  {
    reason: 'Window',
    why: ({ run: { fleet, strategy }, cluster }) => fleet.closed(cluster.windows) ?? fleet.closed(strategy.windows),
  },
  { reason: 'Stopped', why: (_, { stopped }) => stopped },
  {
    reason: 'Unproven',
    asks: true,
    // What goes needs no proof of what comes.
    why: ({ action }, { unproven }) => action !== 'delete' && unproven,
  },
  {
    reason: 'Group',
    why: ({ action }, { earlier, unproven }) =>
      earlier !== undefined && (action !== 'delete' || unproven === undefined) && `${earlier} is not done`,
  },
  {
    reason: 'Approval',
    asks: true,
    why: ({ run }, { group }) =>
      isApprovedFirst(run, group) &&
      !run.orders?.groups?.includes(group) &&
      `group ${group} waits for a person's approval${voidNote(run.ordered, ({ groups = [] }) => groups.includes(group))}`,
  },
  {
    reason: 'Batch',
    back: true,
    why: ({ holds, goal }, { free, kept }) =>
      (holds ? goal === undefined && kept <= 0 : free <= 0) && 'the batch is full',
  },
  { reason: 'Content', skips: true, why: problemOfContent },
  { reason: 'Content', why: earlierProblem },
];

/** The first reason of the list why a target waits; undefined if it may begin. */
export function holdOf(target: Target, place: Slot): Hold | undefined {
  for (const { reason, skips = false, asks = false, back = false, why } of GATES) {
    const message = (target.goal === undefined || back) && why(target, place);
    if (message) return { reason, message, skips, asks };
  }
  return undefined;
}

/** Names of clusters in a message, and how much of what holds each. */
const MAX_NAMES = 3;
const MAX_WHY = 100;

/** What holds the members of a mandatory group in which no cluster has proven what is rolled out, and what to do. */
export function unprovenNote(run: Rollout, { group, members }: Unproven<Target>): string {
  const key = selectorKey(group);
  const named = members.slice(0, MAX_NAMES).map((target) => `${target.cluster.name}: ${whyUnproven(target)}`);
  const more = members.length > MAX_NAMES ? [`${members.length - MAX_NAMES} more`] : [];
  const note = voidNote(run.ordered, (approval) => letsStayUnproven(run, group, approval));
  const title = `group ${key}`;
  const way = isApprovedFirst(run, key) ? `${title} as unproven` : title;
  return `no cluster of ${title} has it yet (${[...named, ...more].join('; ')}): let one of them take it, or approve ${way}${note}`;
}

/** By its name or its number. Whoever lets the clusters of a group begin expects their proof. */
export function letsStayUnproven(run: Rollout, group: Unproven<Target>['group'], approval: Approval): boolean {
  const { groups = [], unproven = [] } = approval;
  const key = selectorKey(group);
  return (
    [key, String(group.index)].some((one) => unproven.includes(one)) ||
    (groups.includes(key) && !isApprovedFirst(run, key))
  );
}

function isApprovedFirst({ strategy }: Rollout, key: string): boolean {
  return strategy.approval?.includes(key) === true;
}

function whyUnproven({ hold, cluster, record }: Target): string {
  const why = hold?.message ?? (cluster.available ? (whyOf(record) ?? 'it skips it') : SILENT);
  return why.length > MAX_WHY ? `${why.slice(0, MAX_WHY - 1)}…` : why;
}

/** What is deleted goes, whatever else it says. */
function isLeaving({ run, cluster, action }: Target): boolean {
  return action === 'delete' && (run.addon.deleting === true || cluster.deleting !== undefined);
}

/** An identity has one owner in a cluster: another add-on of this fleet, or who the cluster's own record names. */
function otherOwner(target: Target): string | false {
  const { run, cluster, record } = target;
  const { addon, fleet } = run;
  if (isRemoval(target)) return false;
  const rivals = fleet.rivals(run, cluster);
  const first = rivals.find(({ name, wants, record: other }) => {
    return wants && (other !== undefined || compareNames(name, addon.name, 'native') < 0);
  });
  if (first !== undefined && record === undefined) {
    return `it belongs to fleet:${first.name}, which selects this cluster, too: narrow one of the two selectors`;
  }
  const owner = cluster.installed?.[identityOn(run, cluster)]?.owner;
  if (owner === undefined || addon.adopt === true) return false;
  return ![addon, ...rivals].some(({ name }) => owner === `fleet:${name}`) && `it belongs to ${owner}`;
}

/** What is tried again was let pass before. */
function braked(target: Target): string | false | undefined {
  return isRemoval(target) && !isUnderRemoval(target) && !isLeft(target) && target.run.brake;
}

function heir({ run, cluster, action }: Target): string | false {
  const next = action === 'delete' && run.fleet.heir(run, cluster);
  if (!next) return false;
  if (next.isKnown) return `fleet:${next.name} is about to take it over`;
  return `fleet:${next.name} cannot be read, and may be what takes it over: correct ${next.name}, or delete it`;
}

function downgrade(target: Target): string | false {
  const { run, cluster, record } = target;
  const { version, knownGood, action, startedAt = 0 } = record?.spec ?? {};
  const next = run.contents.sourceOf(cluster)?.version;
  if (version === undefined || next === undefined || action !== 'Install' || isRemoval(target)) return false;
  // A channel that is as it was has less only for an older Kubernetes, as one of several API servers reports during an upgrade.
  // After any edit a cluster may go back once: one that takes a version back by its range looks like any other edit.
  const isChanged = 'content' in run.addon.source || startedAt < run.begun.since;
  // What began after an approval was not meant by it.
  const { orders } = run;
  const approved = orders?.downgrade === true ? Math.max(orders.at, orders.downgradeAt ?? 0) : undefined;
  if (approved !== undefined && startedAt <= approved) return false;
  const isLower = compareVersions(next, version) < 0;
  const isHeld = isLower ? !(isChanged && knownGood?.version === next) : !isChanged && isForLater(target);
  if (!isHeld) return false;
  const why = isLower
    ? `${next} is lower than the installed ${version}`
    : `the installed ${version} is for a later Kubernetes than ${cluster.kubernetes}`;
  const note =
    approved === undefined
      ? voidNote(run.ordered, ({ downgrade: is }) => is === true)
      : `; the approval of ${timeOf(approved)} is older than what is installed: approve again`;
  return `${why}: approve the downgrade if it is meant${note}`;
}

/** Are all entries that what is there may be from for later versions of Kubernetes than the one that the cluster reports? */
function isForLater({ run, cluster, record }: Target): boolean {
  const { source } = run.addon;
  const kubernetes = parseTriple(cluster.kubernetes);
  if ('content' in source || record === undefined || kubernetes === undefined) return false;
  const installed = canonicalJson(record.spec.source);
  const own = source.channel.filter((one) => 'content' in one && canonicalJson(one.content) === installed);
  const isLater = (range: VersionRange): boolean => range.every(({ from }) => compareTriples(from, kubernetes) > 0);
  return own.length > 0 && own.every(({ range }) => range !== undefined && isLater(range));
}

/** What others need stays as long as they are there; of a circle, none waits for the other. */
function dependent({ run: { fleet, addon, circle }, cluster, action }: Target): string | false {
  if (action !== 'delete') return false;
  for (const [name, other] of fleet.runs) {
    const needs = other.addon.dependsOn?.includes(addon.name) === true && circle?.includes(name) !== true;
    if (needs && other.records.has(cluster.name)) return `${name} depends on it`;
  }
  return false;
}

function dependency(target: Target): string | false {
  const { run, cluster } = target;
  if (isRemoval(target)) return false;
  if (run.circle !== undefined) return `it depends on itself: ${run.circle.join(' → ')}`;
  for (const name of run.addon.dependsOn ?? []) {
    const other = run.fleet.runs.get(name);
    if (other === undefined) return `it depends on ${name}, which does not exist`;
    const there = other.records.has(cluster.name) ? targetOf(other, cluster) : undefined;
    const isReady = there?.state === 'Succeeded' && there.record?.spec.action === 'Install';
    if (!isReady) return `${name} is not ready there`;
  }
  return false;
}

/** Also of what is to replace another add-on: that one stays until there is something in its place. */
function problemOfContent(target: Target): string | undefined {
  if (target.action === 'delete') return undefined;
  const content = target.run.contents.contentOf(target.cluster, target.record);
  return typeof content === 'string' ? content : undefined;
}

/** By the rules of the Helm add-on provider, the first values that cannot be rendered hold all clusters after it. */
function earlierProblem({ run, cluster }: Target): string | false {
  if (run.rules !== 'caaph') return false;
  const first = run.unrendered();
  return (
    first !== undefined &&
    compareNames(first, cluster.name, 'caaph') < 0 &&
    `${first} comes before it, and its values cannot be rendered`
  );
}
