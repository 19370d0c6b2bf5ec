/** What the agent of a cluster reports to its hub. Pure. */
import type { Values } from '../rollout/fleet.ts';
import { isFailure } from '../rollout/strategy.ts';
import type { Decided, Order, OrderRefusal } from './agent.ts';
import { upkeepOf, type Kept } from './agent-record.ts';
import { nextStatus, MAX_LISTED_NAMES } from './addon-status.ts';
import type { SeenObjects } from './changed-by-others.ts';
import { GRACE_S } from './lease.ts';
import type { Condition } from './hub-kinds.ts';

/** How an add-on is now, in the cluster. */
export interface AddonHealth {
  readonly is: Condition['status'];
  readonly why: string;
  readonly since: number;
}

/** The status that an order is to have, with times by the clock of the hub; undefined if it has it. */
export function agentStatus(
  { spec, status: stored }: Order,
  own: Kept | undefined,
  {
    refusal,
    health,
    left,
    seen,
    now,
    ahead = 0,
  }: {
    readonly refusal: OrderRefusal | undefined;
    readonly health: AddonHealth | undefined;
    /** Objects that were seen to be left in the cluster, and when. */
    readonly left?: { readonly titles: readonly string[]; readonly at: number } | undefined;
    readonly seen?: SeenObjects | undefined;
    readonly now: number;
    /** How many seconds the clock of the site is ahead of that of its hub. */
    readonly ahead?: number;
  },
): Values | undefined {
  const isHere = own?.state === 'Succeeded' && own.spec.action === 'Install';
  // What was seen before the present content was here says nothing about it.
  const ill = isHere && health?.is === 'False' ? { ...health, since: Math.max(health.since, own.since) } : undefined;
  const illness = ill && now - ill.since >= GRACE_S ? ill : undefined;
  const hasFailed = refusal?.isFailure === true || illness !== undefined;
  const noticed = own === undefined ? {} : upkeepOf(own, seen, now).report;
  const about = refusal?.isFailure === true ? spec : own?.spec;
  const began = illness ? illness.since + GRACE_S : refusal || !own ? now : own.since;
  return nextStatus(
    {
      applied: { revision: about?.revision ?? 0, hash: about?.specHash ?? '' },
      state: hasFailed ? 'Failed' : (own?.state ?? 'ToApply'),
      reason: refusal?.reason ?? (illness ? 'Unhealthy' : own?.reason || noticed.reason),
      message: refusal?.message ?? illness?.why ?? (own?.message || noticed.message),
      isAvailable: isHere && refusal === undefined && illness === undefined,
      health: isHere ? health?.is : undefined,
      orphans: isHere && left !== undefined && left.at > own.since ? left.titles : (own?.orphans ?? []),
    },
    stored,
    began - ahead,
  );
}

/** What is wrong on a cluster, and what to do; `rival`: another agent that renews the same Lease. */
export function degradedOf(
  { record, refused, detached }: Decided,
  rival: string | undefined,
): Omit<Condition, 'lastTransitionTime'> {
  const failed = Object.entries(record.addons).flatMap(([name, { state }]) => (isFailure(state) ? [name] : []));
  const troubled = [...new Set([...failed, ...refused.keys()])].toSorted();
  const names = (all: readonly string[]): string => all.slice(0, MAX_LISTED_NAMES).join(', ');
  const [reason, message]: readonly [string, string] =
    rival !== undefined
      ? ['TwoAgents', `${rival} is an agent of this cluster, too: stop one of them, or register it under another name`]
      : troubled.length > 0
        ? ['AddonsFailed', names(troubled)]
        : ['AddonsDetached', names(detached)];
  if (message === '') return { type: 'Degraded', status: 'False', reason: 'AsExpected', message };
  return { type: 'Degraded', status: 'True', reason, message };
}
