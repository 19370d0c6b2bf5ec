/** The status of a Cluster, as its agent or the controller that delivers to it sees it. Pure. */
import { fits, type Read } from '../../core/schema.ts';
import type { Values } from '../rollout/fleet.ts';
import { HUB_KINDS, type Condition } from './hub-kinds.ts';
import { conditionsAt } from './write.ts';

export interface ClusterSeen {
  /** Undefined if its API server does not answer, for the reason. */
  readonly facts: Read<typeof HUB_KINDS.Cluster.status>['facts'];
  readonly problem: string;
  /** How many seconds its clock is ahead of that of the hub, 0 for less than a minute; undefined if that is not known. */
  readonly ahead: number | undefined;
}

/** Facts and conditions at `now`, those of `more` among them, with the times of those that are as `stored`. */
export function hubClusterStatus(
  { facts: seen, problem, ahead }: ClusterSeen,
  more: readonly Omit<Condition, 'lastTransitionTime'>[],
  stored: unknown,
  now: number,
): Values {
  const before = fits(HUB_KINDS.Cluster.status, stored) ? stored : {};
  const facts = seen ? { ...before.facts, ...seen } : before.facts;
  const [status, reason] = seen ? (['True', 'Answers'] as const) : (['False', 'Unreachable'] as const);
  const present = [
    { type: 'Available', status, reason, message: problem },
    ...more,
    ...(ahead === undefined ? [] : [clockOf(ahead)]),
  ];
  return { ...(facts && { facts }), conditions: conditionsAt(present, before.conditions, now) };
}

function clockOf(ahead: number): Omit<Condition, 'lastTransitionTime'> {
  const type = 'ClockSynced';
  if (ahead === 0) return { type, status: 'True', reason: 'AsTheHub', message: '' };
  // By the minute: each other text is written.
  const minutes = Math.round(Math.abs(ahead) / 60);
  const message = `its clock is about ${minutes} min ${ahead > 0 ? 'ahead of' : 'behind'} that of the hub`;
  return { type, status: 'False', reason: 'Differs', message };
}
