/** How an add-on spreads over its clusters, and how long a state keeps a place in a batch. Pure. */
import type { GroupRule } from './groups.ts';
import { parseTimeout, sizeOf, type Rules } from './limits.ts';
import type { Window } from './windows.ts';

export const TYPES = ['All', 'Progressive', 'ProgressivePerGroup'] as const;

/** A strategy in the form that people write: times such as `10m`, and sizes such as `3` or `25%`. */
export interface Strategy {
  /** `All` by default: every cluster at once. */
  readonly type?: (typeof TYPES)[number];
  readonly groups?: readonly GroupRule[];
  /** Size for groups that set none, and for the rest. */
  readonly groupSize?: number | string;
  /** Groups that come first, one after the other, and no cluster in them may fail. */
  readonly mandatoryDecisionGroups?: readonly { readonly groupName?: string; readonly groupIndex?: number }[];
  readonly maxConcurrency?: number | string;
  readonly maxFailures?: number | string;
  readonly minSuccessTime?: string;
  /** 30 minutes by default; by upstream's rules, none. */
  readonly progressDeadline?: string;
  readonly onFailure?: 'Stop' | 'Rollback';
  /** Names of groups that a person must approve. */
  readonly approval?: readonly string[];
  readonly windows?: readonly Window[];
  /** Most removals without approval; 10 % of the clusters, and at least 1, by default. */
  readonly maxRemovals?: number | string;
  /** Time within which they count together; 24 hours by default. */
  readonly removalsWithin?: string;
}

/** Is it one of the groups that come first? A name decides before an index. */
export function isMandatory(
  { type = 'All', mandatoryDecisionGroups = [] }: Strategy,
  group: { readonly name: string; readonly index: number },
): boolean {
  const isMeant = ({ groupName = '', groupIndex }: (typeof mandatoryDecisionGroups)[number]): boolean =>
    groupName === '' ? groupIndex === group.index : groupName === group.name;
  return type !== 'All' && mandatoryDecisionGroups.some(isMeant);
}

export const STATES = [
  'ToApply',
  'Progressing',
  'Succeeded',
  'Failed',
  'TimedOut',
  'Skipped',
  'Unreachable',
  'Removing',
] as const;
export type State = (typeof STATES)[number];

export interface Times {
  /** Seconds that a success must last before its place is free. */
  readonly soak: number;
  /** Seconds that an attempt may take. */
  readonly deadline: number;
}

export function timesOf(strategy: Strategy, rules: Rules): Times {
  const { type = 'All', minSuccessTime = '0s', progressDeadline = rules === 'native' ? '30m' : 'None' } = strategy;
  return { soak: type === 'All' ? 0 : parseTimeout(minSuccessTime), deadline: parseTimeout(progressDeadline) };
}

export function isFailure(state: State): boolean {
  return state === 'Failed' || state === 'TimedOut';
}

export interface Settled {
  readonly state: State;
  /** It has a place in the batch. */
  readonly holds: boolean;
  /** Seconds after which time alone changes this; infinite if it does not. */
  readonly recheckAfter: number;
}

/**
 * A state that began `age` seconds ago, as it is now. A failure keeps its place until the deadline by the rules of Open
 * Cluster Management; natively it counts, and its place is free.
 */
export function settle(state: State, age: number, { soak, deadline }: Times, rules: Rules): Settled {
  if (state === 'ToApply') return { state, holds: true, recheckAfter: Infinity };
  const isFinal = state === 'TimedOut' || state === 'Skipped' || (state === 'Failed' && rules === 'native');
  const seconds = isFinal ? 0 : (state === 'Succeeded' ? soak : deadline) - age;
  if (seconds > 0) return { state, holds: true, recheckAfter: seconds };
  return { state: isFinal || state === 'Succeeded' ? state : 'TimedOut', holds: false, recheckAfter: Infinity };
}

/**
 * How many may fail among so many clusters before a rollout stops. Natively 1 by default, so that one broken cluster, whatever it reports,
 * does not hold the others. Of one or two clusters none may, or a bad version would reach all of them; by other rules, none either.
 */
export function failuresOf({ maxFailures }: Strategy, total: number, rules: Rules): number {
  return sizeOf(maxFailures, total, rules === 'native' && total > 2 ? 1 : 0, rules);
}
