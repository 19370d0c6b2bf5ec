/** What the agent of a cluster does about the ClusterAddons of its hub, and what it reports of them. Pure. */
import * as v from 'valibot';
import { compareVersions } from '../core/ref.ts';
import { canonicalJson } from '../core/digest.ts';
import { byKey, convert, fits, readJson, type Bad, type Read } from '../core/schema.ts';
import { parseTimeout } from '../rollout/limits.ts';
import type { Values } from '../rollout/fleet.ts';
import { isFailure } from '../rollout/strategy.ts';
import { timeOf, versionOf, type Live, type Version } from './observe.ts';
import { HUB_KINDS, type Condition } from './schema.ts';
import { conditionsAt, textOf } from './write.ts';

const { spec: SPEC, status: STATUS } = HUB_KINDS.ClusterAddon;
type AgentSpec = Read<typeof SPEC>;

/** A failure is tried again after one minute, and after five; then only another revision helps. */
const MAX_TRIES = 3;
const RETRY_S = [60, 300] as const;
/** What could not begin, such as while another command has the cluster. */
const LATER_S = 15;
/** Contents that were healthy: the present one, and the one before it. */
const MAX_GOOD = 2;
/** A list in a status is no longer. */
const MAX_NAMES = 100;
/** What was healthy, and is not any more for this time, has failed: five times the interval of a lease. */
export const GRACE_S = 300;

const kept = v.object({
  /** The last one that was obeyed: what is acted on while the hub is away. */
  spec: SPEC,
  state: v.picklist(['Progressing', 'Succeeded', 'Failed', 'Removing', 'TimedOut']),
  /** Why, in one word, and for people. */
  reason: v.string(),
  message: v.string(),
  /** When the state began, in seconds since 1970, like all times here. */
  since: v.number(),
  tries: v.number(),
  /** When it may be tried again. */
  next: v.number(),
  /** Hashes of contents that were healthy here, the newest first. */
  good: v.array(v.string()),
  /** Objects that a removal has left. */
  orphans: v.array(v.string()),
});
type Kept = Read<typeof kept>;

const agentRecord = v.object({ format: v.literal(1), addons: byKey(kept) });
/** What an agent keeps on its disk. */
export type AgentRecord = Read<typeof agentRecord>;
export const NO_RECORD: AgentRecord = { format: 1, addons: {} };

/** `bad` makes the error for what another version has written. */
export function readAgentRecord(text: string, bad: Bad): AgentRecord {
  return readJson(agentRecord, text, { bad });
}

/** A ClusterAddon of the hub. */
export interface Order {
  readonly at: Version;
  /** Undefined for one that this version cannot read. */
  readonly spec: AgentSpec | undefined;
  /** The stored status. */
  readonly status: unknown;
}

export function readOrder(object: Live): Order {
  const read = convert(SPEC, object['spec']);
  return { at: versionOf(object), spec: 'problems' in read ? undefined : read.value, status: object['status'] };
}

export interface AgentJob {
  readonly addon: string;
  readonly spec: AgentSpec;
  /** `forget`: only its record goes, and its objects stay. */
  readonly act: 'install' | 'remove' | 'forget';
  /** It has what another add-on of the fleet has left to it. */
  readonly takesOver: boolean;
  /** A removal continues after what fails. */
  readonly keepGoing: boolean;
}

export interface Known {
  readonly now: number;
  /** Identifier of the one hub that is obeyed. */
  readonly hub: string;
  /** Also obeys lower revisions and versions than before, such as those of a hub that was restored. */
  readonly acceptOlder: boolean;
}

export interface Decided {
  readonly record: AgentRecord;
  readonly jobs: readonly AgentJob[];
  /** Why orders are not followed, by add-on. */
  readonly refused: ReadonlyMap<string, Refusal>;
  /** Add-ons that run without a ClusterAddon. */
  readonly detached: readonly string[];
  /** Seconds until time alone makes a difference; infinite if it does not. */
  readonly recheckAfter: number;
}

interface Refusal {
  readonly reason: 'AnotherHub' | 'Unreadable' | 'OlderRevision' | 'ChangedRevision' | 'Downgrade';
  readonly message: string;
  /** It has failed: the revision itself is good. */
  readonly isFailure: boolean;
}

/** `orders`: all of the hub, by name; undefined while they are not known, when the last ones are acted on. */
export function decide(orders: ReadonlyMap<string, Order> | undefined, before: AgentRecord, known: Known): Decided {
  const { now } = known;
  const addons: Record<string, Kept> = { ...before.addons };
  const refused = new Map<string, Refusal>();
  const jobs: AgentJob[] = [];
  const detached: string[] = [];
  for (const [name, { spec }] of orders ?? []) {
    const own = addons[name];
    const refusal = spec === undefined ? UNREADABLE : refusalOf(spec, own, known);
    if (refusal !== undefined) refused.set(name, refusal);
    else if (spec !== undefined && (own === undefined || isOther(spec, own.spec))) addons[name] = begun(spec, own, now);
  }
  const heirs = new Map<string, string>();
  for (const [name, { spec }] of Object.entries(addons)) {
    if (orders?.has(name) === true && spec.action === 'Install') heirs.set(spec.identity, name);
  }
  let recheckAfter = Infinity;
  const left = new Set<string>();
  for (const [addon, own] of Object.entries(addons)) {
    const job = { addon, spec: own.spec, takesOver: false, keepGoing: false };
    const isGone = orders !== undefined && !orders.has(addon);
    const isRemoved = own.spec.action === 'Remove';
    if (isGone && isRemoved && own.state === 'Succeeded') delete addons[addon];
    else if (isGone && (isRemoved || heirs.has(own.spec.identity))) {
      // The hub has given it up, or to another of its add-ons.
      jobs.unshift({ ...job, act: 'forget' });
      left.add(own.spec.identity);
    } else if (isGone) detached.push(addon);
    else if (!isPending(own)) continue;
    else if (own.next > now) recheckAfter = Math.min(recheckAfter, own.next - now);
    else {
      const act = !isRemoved ? 'install' : isGivenUp(own, now) && !blocks(own) ? 'forget' : 'remove';
      const keepGoing = act === 'remove' && own.spec.remove?.onFailure === 'Skip' && own.tries > 0;
      jobs.push({ ...job, act, takesOver: left.has(own.spec.identity), keepGoing });
    }
  }
  const taken = jobs.map((job) => ({ ...job, takesOver: job.act === 'install' && left.has(job.spec.identity) }));
  return { record: { ...before, addons }, jobs: taken, refused, detached: detached.toSorted(), recheckAfter };
}

const UNREADABLE: Refusal = {
  reason: 'Unreadable',
  message: 'this version of curlew cannot read it: update the agent',
  isFailure: false,
};

function refusalOf(spec: AgentSpec, own: Kept | undefined, { hub, acceptOlder }: Known): Refusal | undefined {
  const refuse = (reason: Refusal['reason'], message: string): Refusal => {
    return { reason, message, isFailure: reason === 'Downgrade' };
  };
  if (spec.hub !== hub) return refuse('AnotherHub', 'another hub has written it');
  if (own === undefined) return undefined;
  const { revision } = own.spec;
  const hint = 'curlew agent run --accept-older accepts it';
  if (spec.revision === revision) {
    const isSame = spec.specHash === own.spec.specHash && spec.action === own.spec.action;
    return isSame ? undefined : refuse('ChangedRevision', `it is another revision ${revision} than was obeyed`);
  }
  if (acceptOlder) return undefined;
  if (spec.revision < revision) {
    return refuse('OlderRevision', `revision ${revision} was obeyed, and ${spec.revision} is older; ${hint}`);
  }
  const [was, next] = [own.spec.version, spec.version];
  if (spec.action === 'Remove' || was === undefined || next === undefined) return undefined;
  if (compareVersions(next, was) >= 0 || spec.specHash === goalOf(own)) return undefined;
  return refuse('Downgrade', `${was} is here, and ${next} is not what was healthy before it; ${hint}`);
}

/** The content that may be gone back to, whatever its version. */
function goalOf({ good, spec }: Kept): string | undefined {
  return good.find((hash) => hash !== spec.specHash);
}

function isOther(spec: AgentSpec, before: AgentSpec): boolean {
  return spec.revision !== before.revision;
}

function begun(spec: AgentSpec, own: Kept | undefined, now: number): Kept {
  const state = spec.action === 'Remove' ? 'Removing' : 'Progressing';
  return { ...NEW, spec, state, since: now, good: own?.good ?? [] };
}

const NEW = { reason: '', message: '', tries: 0, next: 0, orphans: [] } as const;

function isPending({ state, tries }: Kept): boolean {
  return state === 'Progressing' || state === 'Removing' || (state === 'Failed' && tries < MAX_TRIES);
}

function blocks({ spec: { remove } }: Kept): boolean {
  return (remove?.onFailure ?? 'Block') === 'Block';
}

function isGivenUp(own: Kept, now: number): boolean {
  return own.tries >= MAX_TRIES || isLate(own, now);
}

function isLate({ spec: { remove }, since }: Kept, now: number): boolean {
  return now - since >= parseTimeout(remove?.timeout ?? '30m');
}

/** What came of a job. `later`: nothing has begun. */
export interface AgentDone {
  readonly result: 'done' | 'failed' | 'later';
  readonly reason: string;
  readonly message: string;
  readonly orphans?: readonly string[] | undefined;
}

/** The record after a job; unchanged for one about a revision that is no longer obeyed. */
export function afterJob(
  record: AgentRecord,
  { addon, spec, act }: AgentJob,
  done: AgentDone,
  now: number,
): AgentRecord {
  const { [addon]: own, ...others } = record.addons;
  if (own === undefined || isOther(spec, own.spec)) return record;
  const isRemoved = spec.action === 'Remove';
  // The hub no longer has the add-on: nothing is left of it.
  if (act === 'forget' && done.result === 'done' && !(isRemoved && own.state === 'Removing')) {
    return { ...record, addons: others };
  }
  return { ...record, addons: { ...others, [addon]: after(own, { act, ...done }, now) } };
}

function after(
  own: Kept,
  { act, result, reason, message, orphans = [] }: AgentDone & Pick<AgentJob, 'act'>,
  now: number,
): Kept {
  const { spec, tries, state, since } = own;
  if (result === 'later') return { ...own, reason, message, next: now + LATER_S };
  if (result === 'done') {
    const { specHash } = spec;
    const isGood = spec.action === 'Install';
    const good = isGood ? [specHash, ...own.good.filter((one) => one !== specHash)].slice(0, MAX_GOOD) : own.good;
    const why = act === 'forget' ? { reason: 'Orphaned', message: own.message } : { reason: '', message: '' };
    return { ...NEW, spec, good, state: 'Succeeded', since: now, ...why, orphans: [...orphans] };
  }
  const failed = {
    ...own,
    reason,
    message,
    tries: tries + 1,
    next: now + (RETRY_S[tries] ?? 0),
    orphans: [...orphans],
  };
  if (spec.action === 'Install') return { ...failed, state: 'Failed', since: state === 'Failed' ? since : now };
  if (!isGivenUp(failed, now)) return failed;
  if (!blocks(own)) return { ...failed, next: now };
  return { ...failed, state: isLate(own, now) ? 'TimedOut' : 'Failed', tries: MAX_TRIES, since: now };
}

/** How an add-on is now, in the cluster. */
export interface Health {
  readonly is: 'True' | 'False' | 'Unknown';
  readonly why: string;
  readonly since: number;
}

/** The status that an order is to have; undefined if it has it. */
export function statusOf(
  { spec, status: stored }: Order,
  own: Kept | undefined,
  {
    refusal,
    health,
    now,
  }: { readonly refusal: Refusal | undefined; readonly health: Health | undefined; readonly now: number },
): Values | undefined {
  const before = fits(STATUS, stored) ? stored : undefined;
  const isHere = own?.state === 'Succeeded' && own.spec.action === 'Install';
  const illness = isHere && health?.is === 'False' && now - health.since >= GRACE_S ? health : undefined;
  const hasFailed = refusal?.isFailure === true || illness !== undefined;
  const about = refusal?.isFailure === true ? spec : own?.spec;
  const reason = refusal?.reason ?? (illness ? 'Unhealthy' : own?.reason);
  const message = refusal?.message ?? illness?.why ?? own?.message;
  const present = {
    applied: { revision: about?.revision ?? 0, hash: about?.specHash ?? '' },
    state: hasFailed ? 'Failed' : (own?.state ?? 'ToApply'),
    ...(reason && { reason }),
    ...(message && { message: textOf(message) }),
    ...(isHere && health && { health: health.is }),
    ...(own && own.orphans.length > 0 && { orphans: own.orphans.slice(0, MAX_NAMES).map(textOf) }),
  };
  const isSame = before?.state === present.state && before.reason === reason;
  const given = isSame ? before.since : timeOf(now);
  const since = illness ? timeOf(illness.since + GRACE_S) : refusal || !own ? given : timeOf(own.since);
  const isAvailable = isHere && refusal === undefined && illness === undefined;
  const condition: Condition = {
    type: 'Available',
    status: isAvailable ? 'True' : 'False',
    reason: reason || present.state,
    lastTransitionTime: since,
  };
  const next = { ...present, since, conditions: [condition] };
  return canonicalJson(next) === canonicalJson(stored ?? {}) ? undefined : next;
}

/** What an agent finds out about its cluster. */
export interface ClusterSeen {
  /** Undefined if its API server does not answer, for the reason. */
  readonly facts: Read<typeof HUB_KINDS.Cluster.status>['facts'];
  readonly problem: string;
  /** How many seconds the clock of the hub is ahead. */
  readonly ahead: number;
}

/** The status of the cluster at `now`, with the times of those conditions that are as `before`. */
export function clusterStatus(
  seen: ClusterSeen,
  { record, refused, detached }: Decided,
  before: unknown,
  now: number,
): Values {
  const old = fits(HUB_KINDS.Cluster.status, before) ? before : {};
  const failed = Object.entries(record.addons).flatMap(([name, { state }]) => (isFailure(state) ? [name] : []));
  const troubled = [...new Set([...failed, ...refused.keys()])].toSorted();
  const trouble = troubled.length > 0 ? 'AddonsFailed' : detached.length > 0 ? 'AddonsDetached' : undefined;
  const said = (trouble === 'AddonsFailed' ? troubled : detached).slice(0, MAX_NAMES).join(', ');
  const isThere = seen.facts !== undefined;
  const isSynced = seen.ahead === 0;
  const present = [
    { type: 'Available', is: isThere, reason: isThere ? 'Answers' : 'Unreachable', message: seen.problem },
    { type: 'Degraded', is: trouble !== undefined, reason: trouble ?? 'AsExpected', message: said },
    {
      type: 'ClockSynced',
      is: isSynced,
      reason: isSynced ? 'AsTheHub' : 'Differs',
      message: isSynced ? '' : `the clock of the hub is ${seen.ahead} s ahead`,
    },
  ].map(({ is, ...one }) => ({ ...one, status: is ? ('True' as const) : ('False' as const) }));
  const conditions = conditionsAt(present, old.conditions, now);
  const facts = seen.facts ?? old.facts;
  return { ...(facts && { facts }), lastSeen: timeOf(now), conditions };
}
