/** What is wrong with how an add-on is to be rolled out. Pure. */
import type { FleetAddon } from './fleet.ts';
import { parseTimeout, problemIn, sizeOf } from './limits.ts';
import { timesOf, type Strategy } from './strategy.ts';

/** Why a strategy cannot be followed. */
export function problemOf({ rollout = {}, remove = {}, compat }: FleetAddon): string | undefined {
  const { groups = [], mandatoryDecisionGroups = [] } = rollout;
  const problem = problemIn(() => {
    timesOf(rollout, 'native');
    for (const time of [remove.timeout, rollout.removalsWithin]) parseTimeout(time ?? '');
    const { maxConcurrency, maxFailures, maxRemovals, groupSize } = rollout;
    const sizes = [maxConcurrency, maxFailures, maxRemovals, groupSize, ...groups.map(({ size }) => size)];
    for (const size of sizes) sizeOf(size, 1, 1, 'native');
  });
  if (problem !== undefined) return problem;
  const unknown = mandatoryDecisionGroups.find(
    ({ groupName = '' }) => compat !== 'ocm' && groupName !== '' && groups.every(({ name }) => name !== groupName),
  );
  return unknown && `there is no group ${unknown.groupName ?? ''}`;
}

/** What limits removals in a strategy that cannot be followed: a deleted add-on, or cluster, does not wait for its correction. */
export function removalLimitsOf({ windows, maxRemovals, removalsWithin }: Strategy = {}): Strategy {
  const isRead = maxRemovals !== undefined && problemIn(() => sizeOf(maxRemovals, 1, 1, 'native')) === undefined;
  const isTime = removalsWithin !== undefined && problemIn(() => parseTimeout(removalsWithin)) === undefined;
  return { ...(windows && { windows }), ...(isRead && { maxRemovals }), ...(isTime && { removalsWithin }) };
}
