/** The status of a ClusterAddon, whoever delivers its content: the agent of its site, or the controller. Pure. */
import { canonicalJson } from '../../core/digest.ts';
import { fits } from '../../core/schema.ts';
import { timeOf } from '../../core/time.ts';
import type { Values } from '../rollout/fleet.ts';
import type { State } from '../rollout/strategy.ts';
import { HUB_KINDS, type Condition } from './hub-kinds.ts';
import { conditionsAt, textOf } from './write.ts';

/** A list in a status is no longer. */
export const MAX_LISTED_NAMES = 100;

/** How the content of an add-on is on a cluster. */
export interface AddonReport {
  readonly state: State;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Objects that stay behind. */
  readonly orphans?: readonly string[] | undefined;
}

/**
 * The status that a ClusterAddon is to have; undefined if it has it. `at`: when its state began, if it is another one than in
 * `stored`. A state that gets another reason keeps its time, from which deadlines and soaks count.
 */
export function nextStatus(
  {
    applied,
    state,
    reason,
    message,
    isAvailable,
    health,
    orphans = [],
  }: AddonReport & {
    /** What the report is about. */
    readonly applied: { readonly revision: number; readonly hash: string };
    readonly isAvailable: boolean;
    readonly health?: Condition['status'] | undefined;
  },
  stored: unknown,
  at: number,
): Values | undefined {
  const before = fits(HUB_KINDS.ClusterAddon.status, stored) ? stored : undefined;
  const isSame = before?.state === state && canonicalJson(before.applied) === canonicalJson(applied);
  const available = { type: 'Available', status: isAvailable ? 'True' : 'False', reason: reason || state } as const;
  const next = {
    applied,
    state,
    ...(reason && { reason }),
    ...(message && { message: textOf(message) }),
    ...(health && { health }),
    ...(orphans.length > 0 && { orphans: orphans.slice(0, MAX_LISTED_NAMES).map((one) => textOf(one)) }),
    since: isSame ? before.since : timeOf(at),
    conditions: conditionsAt([available], before?.conditions, at),
  };
  return canonicalJson(next) === canonicalJson(stored ?? {}) ? undefined : next;
}
