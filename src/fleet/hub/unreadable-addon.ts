/** What a FleetAddon says of removals, its own and others, where other fields of it cannot be read. Pure. */
import { isObject } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import type { FleetAddon } from '../rollout/fleet.ts';
import { UNREADABLE, windowProblem, type Window } from '../rollout/windows.ts';
import { removalRules, selection } from './hub-kinds.ts';

type Rules = Read<typeof removalRules>;
type Known = Pick<FleetAddon, 'clusterSelector' | 'dependsOn' | 'mode' | 'remove' | 'rollout'>;

const HELD = 'no removal begins until it is corrected';
const KEPT = 'what it may take over stays on every cluster until it is corrected';

/** Each field by itself, so that one that cannot be read takes no other with it; and `first`, with why these cannot be read. */
export function removalRulesIn(
  spec: unknown,
  first: string,
): { readonly rules: Known; readonly closed: string | undefined; readonly problem: string } {
  const { rollout, ...own } = isObject(spec) ? spec : {};
  const problems: string[] = [];
  const read = (field: object, consequence: string): Rules | undefined => {
    const result = convert(removalRules, field);
    if (!('problems' in result)) return result.value;
    problems.push(`${result.problems[0].message} (${consequence})`);
    return undefined;
  };
  const ofRollout = (name: string): object => {
    if (!isObject(rollout)) return rollout === undefined ? {} : { rollout };
    return { rollout: only(rollout, name) };
  };
  const rules: Rules = {
    ...read(only(own, 'dependsOn'), 'removals go without it'),
    ...read(only(own, 'mode'), 'removals go without it'),
    ...read(only(own, 'remove'), 'removals go without it'),
  };
  const limit = read(ofRollout('maxRemovals'), 'removals have the default limit')?.rollout;
  const within = read(ofRollout('removalsWithin'), 'removals count together for the default time')?.rollout;
  const timed = read(ofRollout('windows'), HELD);
  const windows = timed === undefined ? [UNREADABLE] : (timed.rollout?.windows ?? []);
  const closed = timed === undefined ? problems.at(-1) : windowsProblem(windows);
  if (timed !== undefined && closed !== undefined) problems.push(closed);
  const selected = convert(selection, own);
  if ('problems' in selected) problems.push(`${selected.problems[0].message} (${KEPT})`);
  const clusterSelector = 'value' in selected ? selected.value.clusterSelector : undefined;
  const all = problems.some((one) => one.startsWith(first)) ? problems : [first, ...problems];
  return {
    rules: { ...rules, clusterSelector, rollout: { ...limit, ...within, windows } },
    closed,
    problem: all.join('; '),
  };
}

function only(map: Readonly<Record<string, unknown>>, name: string): object {
  return name in map ? { [name]: map[name] } : {};
}

/** Why windows cannot be read, and what comes of that. */
export function windowsProblem(windows: readonly Window[] = []): string | undefined {
  const problem = windows.map(windowProblem).find((one) => one !== undefined);
  return problem && `${problem} (${HELD})`;
}
