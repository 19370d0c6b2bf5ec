/** What the agent of a cluster reports to its hub. Pure. */
import { canonicalJson } from '../core/digest.ts';
import { fits, type Read } from '../core/schema.ts';
import type { Values } from '../rollout/fleet.ts';
import { isFailure } from '../rollout/strategy.ts';
import type { Decided, Kept, Order, Refusal } from './agent.ts';
import { timeOf } from './observe.ts';
import { HUB_KINDS, type Condition } from './schema.ts';
import { conditionsAt, textOf } from './write.ts';

const { status: STATUS } = HUB_KINDS.ClusterAddon;
/** A list in a status is no longer. */
const MAX_NAMES = 100;
/** What was healthy has failed, and an agent is silent, after this time: five times the interval at which Leases are renewed. */
export const GRACE_S = 300;

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
      message: isSynced ? '' : `the clock of the hub is about ${Math.round(seen.ahead / 60)} min ahead`,
    },
  ].map(({ is, ...one }) => ({ ...one, status: is ? ('True' as const) : ('False' as const) }));
  const conditions = conditionsAt(present, old.conditions, now);
  const facts = seen.facts ?? old.facts;
  return { ...(facts && { facts }), lastSeen: timeOf(now), conditions };
}
