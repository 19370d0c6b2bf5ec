/** What is wrong with how an add-on is to be rolled out. Pure. */
import { CurlewError } from '../core/errors.ts';
import type { FleetAddon } from './fleet.ts';
import { parseTimeout, sizeOf } from './limits.ts';
import { timesOf } from './strategy.ts';

/** Why a strategy cannot be followed. */
export function problemOf({ rollout = {}, remove = {}, compat }: FleetAddon): string | undefined {
  const { groups = [], mandatoryDecisionGroups = [] } = rollout;
  try {
    timesOf(rollout, 'native');
    parseTimeout(remove.timeout ?? '');
    const { maxConcurrency, maxFailures, maxRemovals, groupSize } = rollout;
    const sizes = [maxConcurrency, maxFailures, maxRemovals, groupSize, ...groups.map(({ size }) => size)];
    for (const size of sizes) sizeOf(size, 1, 1, 'native');
  } catch (error) {
    if (error instanceof CurlewError) return error.message;
    throw error;
  }
  const unknown = mandatoryDecisionGroups.find(
    ({ groupName = '' }) => compat !== 'ocm' && groupName !== '' && groups.every(({ name }) => name !== groupName),
  );
  return unknown && `there is no group ${unknown.groupName ?? ''}`;
}
