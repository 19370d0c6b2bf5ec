/** The rollout strategy of a placement of Open Cluster Management -> that of a FleetAddon. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { aText, fields, type Read } from '../../core/schema.ts';
import { parseDuration } from '../../core/units.ts';
import type { Path } from '../../formats/yaml/yaml.ts';
import { like, list, part, amount } from './kinds.ts';
import type { Placed } from './placement.ts';
import { TYPES } from '../rollout/strategy.ts';

/** A duration of Go. */
const goTime = like(/^(?:0|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[hms]))+)$/, 'a time such as 5m or 1h30m');
const times = {
  minSuccessTime: v.exactOptional(goTime),
  progressDeadline: v.exactOptional(like(/^(?:\d{1,9}[hms]|None)$/, 'a time such as 90s, 10m or 2h, or None')),
  maxFailures: v.exactOptional(part),
};
const mandatory = fields({ groupName: v.exactOptional(aText), groupIndex: v.exactOptional(amount) });
const inGroups = { ...times, mandatoryDecisionGroups: v.exactOptional(list(mandatory)) };

export const ROLLOUT_STRATEGY = fields({
  type: v.exactOptional(v.picklist(TYPES, `one of ${TYPES.join(', ')}`)),
  all: v.exactOptional(fields(times)),
  progressive: v.exactOptional(fields({ ...inGroups, maxConcurrency: v.exactOptional(part) })),
  progressivePerGroup: v.exactOptional(fields(inGroups)),
});

const FIELDS = { All: 'all', Progressive: 'progressive', ProgressivePerGroup: 'progressivePerGroup' } as const;

/** Warns of the settings of another type, which have no effect. */
export function fromRolloutStrategy(
  strategy: Read<typeof ROLLOUT_STRATEGY>,
  { groups, groupSize }: Placed,
  path: Path,
  findings: Findings,
) {
  const { type = 'All' } = strategy;
  for (const [other, field] of Object.entries(FIELDS)) {
    if (other === type || strategy[field] === undefined) continue;
    findings.ignored([...path, field], field, `the type is ${type}`);
  }
  const { minSuccessTime, ...own } = strategy[FIELDS[type]] ?? {};
  return {
    type,
    ...(groups.length > 0 && { groups }),
    ...(groupSize !== undefined && { groupSize }),
    ...(type === 'Progressive' && groupSize !== undefined && { maxConcurrency: groupSize }),
    ...own,
    ...(minSuccessTime !== undefined && { minSuccessTime: `${secondsOf(minSuccessTime)}s` }),
  };
}

/** Whole seconds, rounded up. Products of fractions are inexact beyond microseconds: `1.1h` is 3960 seconds, not 3961. */
function secondsOf(duration: string): number {
  return Math.ceil(Number(((parseDuration(duration) ?? 0) / 1000).toFixed(6)));
}
