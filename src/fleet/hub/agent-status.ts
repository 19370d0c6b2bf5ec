/** What the agent of a cluster reports to its hub. Pure. */
import { canonicalJson } from '../../core/digest.ts';
import { fits } from '../../core/schema.ts';
import type { Values } from '../rollout/fleet.ts';
import { isFailure } from '../rollout/strategy.ts';
import type { Decided, Kept, Order, Refusal } from './agent.ts';
import { timeOf } from '../../core/time.ts';
import { HUB_KINDS, type Condition } from './schema.ts';
import { textOf } from './write.ts';

const { status: STATUS } = HUB_KINDS.ClusterAddon;
/** A list in a status is no longer. */
const MAX_NAMES = 100;
/** What was healthy has failed, and an agent is silent, after this time: five times the interval at which Leases are renewed. */
export const GRACE_S = 300;

/** How an add-on is now, in the cluster. */
export interface Health {
  readonly is: Condition['status'];
  readonly why: string;
  readonly since: number;
}

/** Is a component available, by the age of its Lease? Undefined if there is none. */
export function leaseStatus(ageSeconds: number | undefined): Health['is'] {
  if (ageSeconds === undefined) return 'Unknown';
  return ageSeconds < GRACE_S ? 'True' : 'False';
}

/** The status that an order is to have, with times by the clock of the hub; undefined if it has it. */
export function statusOf(
  { spec, status: stored }: Order,
  own: Kept | undefined,
  {
    refusal,
    health,
    now,
    ahead = 0,
  }: {
    readonly refusal: Refusal | undefined;
    readonly health: Health | undefined;
    readonly now: number;
    /** How many seconds the clock of the site is ahead of that of its hub. */
    readonly ahead?: number;
  },
): Values | undefined {
  const before = fits(STATUS, stored) ? stored : undefined;
  const isHere = own?.state === 'Succeeded' && own.spec.action === 'Install';
  // What was seen before the present content was here says nothing about it.
  const ill = isHere && health?.is === 'False' ? { ...health, since: Math.max(health.since, own.since) } : undefined;
  const illness = ill && now - ill.since >= GRACE_S ? ill : undefined;
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
  const isAbout = canonicalJson(before?.applied ?? {}) === canonicalJson(present.applied);
  const isSame = isAbout && before?.state === present.state && (before.reason ?? '') === (reason ?? '');
  const began = illness ? illness.since + GRACE_S : refusal || !own ? now : own.since;
  // What is stored stays: the clock of the site may have been set meanwhile.
  const since = isSame ? before.since : timeOf(began - ahead);
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

/** What is wrong on a cluster, and what to do; `rival`: another agent that renews the same Lease. */
export function degradedOf(
  { record, refused, detached }: Decided,
  rival: string | undefined,
): Omit<Condition, 'lastTransitionTime'> {
  const failed = Object.entries(record.addons).flatMap(([name, { state }]) => (isFailure(state) ? [name] : []));
  const troubled = [...new Set([...failed, ...refused.keys()])].toSorted();
  const names = (all: readonly string[]): string => all.slice(0, MAX_NAMES).join(', ');
  const [reason, message]: readonly [string, string] =
    rival !== undefined
      ? ['TwoAgents', `${rival} is an agent of this cluster, too: stop one of them, or register it under another name`]
      : troubled.length > 0
        ? ['AddonsFailed', names(troubled)]
        : ['AddonsDetached', names(detached)];
  if (message === '') return { type: 'Degraded', status: 'False', reason: 'AsExpected', message };
  return { type: 'Degraded', status: 'True', reason, message };
}
