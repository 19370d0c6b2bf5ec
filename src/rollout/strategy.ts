/** How an add-on spreads over its clusters. Pure. */
import type { GroupRule } from './groups.ts';
import { parseTimeout, sizeOf, type Rules } from './limits.ts';

/** As people write it: times such as `10m`, and sizes such as `3` or `25%`. */
export interface Strategy {
  /** `All` by default: every cluster at once. */
  readonly type?: 'All' | 'Progressive' | 'ProgressivePerGroup';
  readonly groups?: readonly GroupRule[];
  /** Of groups that set none, and of the rest. */
  readonly groupSize?: number | string;
  /** These groups come first, one after the other, and no cluster in them may fail. */
  readonly mandatoryDecisionGroups?: readonly { readonly groupName?: string; readonly groupIndex?: number }[];
  readonly maxConcurrency?: number | string;
  readonly maxFailures?: number | string;
  readonly minSuccessTime?: string;
  /** 30 minutes by default; by the rules of others, none. */
  readonly progressDeadline?: string;
  readonly onFailure?: 'Stop' | 'Rollback';
  /** Names of groups that a person must approve. */
  readonly approval?: readonly string[];
  /** Most removals at once without approval; 10 % of the clusters, and at least 1, by default. */
  readonly maxRemovals?: number | string;
}

/** The times of a strategy in seconds. */
export function timesOf(
  { type = 'All', minSuccessTime = '0s', progressDeadline }: Strategy,
  rules: Rules,
): { readonly soak: number; readonly deadline: number } {
  const deadline = parseTimeout(progressDeadline ?? (rules === 'native' ? '30m' : 'None'));
  return { soak: type === 'All' ? 0 : parseTimeout(minSuccessTime), deadline };
}

/** How many may fail among so many clusters before a rollout stops; 0 by default. */
export function failuresOf({ maxFailures }: Strategy, total: number, rules: Rules): number {
  return sizeOf(maxFailures, total, 0, rules);
}

/** Is it one of the groups that come first? A name decides before an index. */
export function isMandatory(
  { type = 'All', mandatoryDecisionGroups = [] }: Strategy,
  { name, index }: { readonly name: string; readonly index: number },
): boolean {
  if (type === 'All') return false;
  return mandatoryDecisionGroups.some(({ groupName = '', groupIndex }) =>
    groupName === '' ? groupIndex === index : groupName === name,
  );
}
