/** Which clusters of an add-on begin now: group after group, at most so many at once, and so many failures. Pure. */
import type { Group } from './groups.ts';
import { sizeOf } from './limits.ts';
import { failuresOf, isFailure, isMandatory, type State, type Strategy } from './strategy.ts';

export interface Member {
  readonly state: State;
  /** It has a place in the batch: it is under way, or its success has not lasted long enough. */
  readonly holds: boolean;
  /** It waits for something new. */
  readonly wants: boolean;
  /** It has what is rolled out, and that has lasted long enough; it may be offline since. */
  readonly isProven: boolean;
  /** It is offline, so whether it can have what is rolled out is unknown. */
  readonly isUnknown: boolean;
}

/** Where a member waits. */
export interface Place {
  /** Why no member may begin. */
  readonly stopped: string | undefined;
  /** Title of the first stage before this one that is not done. */
  readonly earlier: string | undefined;
  /** The same, if that stage only lacks a success, since its clusters do not answer. */
  readonly unproven: string | undefined;
  readonly group: string;
  /** Places that are free. */
  readonly free: number;
}

export interface Hold {
  readonly reason: string;
  readonly message: string;
  /** Others do not wait for this member. */
  readonly skips: boolean;
}

export interface Advance<M> {
  readonly started: M[];
  readonly waiting: (readonly [M, Hold])[];
  stopped: string | undefined;
  /** How many stages are done, from the first. */
  reached: number;
}

interface Stage<M> {
  readonly title: string;
  readonly allowed: number;
  readonly groups: readonly Group<M>[];
  /** Of a mandatory group: all its members, from which its last part must have a proof. */
  readonly proof?: readonly M[];
}

function sizeOfAll<M>(groups: readonly Group<M>[]): number {
  return groups.reduce((sum, { members }) => sum + members.length, 0);
}

/** What comes one after the other, and how many may fail in each. */
function stagesOf<M>(groups: readonly Group<M>[], strategy: Strategy): readonly Stage<M>[] {
  const { type = 'All' } = strategy;
  const alone =
    (allowed: number) =>
    (group: Group<M>): Stage<M> => {
      return { title: `group ${group.name || group.index}`, allowed, groups: [group] };
    };
  const first = groups.filter((group) => isMandatory(strategy, group));
  const mandatory = (group: Group<M>): Stage<M> => {
    const parts = first.filter(({ name, index }) => (name === '' ? index === group.index : name === group.name));
    return { ...alone(0)(group), ...(parts.at(-1) === group && { proof: parts.flatMap(({ members }) => members) }) };
  };
  const rest = groups.filter((group) => !first.includes(group));
  const allowed = (some: readonly Group<M>[]): number =>
    type === 'All' ? Infinity : failuresOf(strategy, sizeOfAll(some), 'native');
  if (type === 'ProgressivePerGroup') {
    return [...first.map(mandatory), ...rest.map((group) => alone(allowed([group]))(group))];
  }
  return [...first.map(mandatory), { title: 'the rest', allowed: allowed(rest), groups: rest }];
}

/**
 * `reached` stages were done before: what waits in them now comes with the last stage. `hold` answers why a member must wait. A
 * percentage of `maxConcurrency` is of the members outside mandatory groups, or of all if there are none.
 */
export function advance<M extends Member>(
  groups: readonly Group<M>[],
  strategy: Strategy,
  {
    reached,
    stopped,
    approved = [],
    hold,
  }: Pick<Advance<M>, 'reached' | 'stopped'> & {
    /** Names of groups that a person has approved. */
    readonly approved?: readonly string[] | undefined;
    readonly hold: (member: M, place: Place) => Hold | undefined;
  },
): Advance<M> {
  const stages = stagesOf(groups, strategy);
  const result: Advance<M> = { started: [], waiting: [], stopped, reached: 0 };
  const total = sizeOfAll(groups.filter((group) => !isMandatory(strategy, group))) || sizeOfAll(groups);
  let free = Math.max(1, sizeOf(strategy.maxConcurrency, total, Infinity, 'native'));
  const late: (readonly [M, string])[] = [];
  const queues = stages.map((): (readonly [M, string])[] => []);
  for (const [at, { title, allowed, groups: own }] of stages.entries()) {
    const members = own.flatMap((group) => group.members.map((member) => [member, group.name] as const));
    const failed = members.filter(([{ state }]) => isFailure(state)).length;
    if (failed > allowed) result.stopped ??= `${title}: ${failed} failed, and ${allowed} may`;
    for (const entry of members) {
      const [{ wants, holds }] = entry;
      if (holds) free -= 1;
      (at < reached && wants && !holds ? late : queues[at])?.push(entry);
    }
  }
  queues.at(-1)?.push(...late);
  let [earlier, unproven]: (string | undefined)[] = [];
  for (const [at, { title, groups: own, proof = [] }] of stages.entries()) {
    const isUnproven = !proof.some(({ isProven }) => isProven) && proof.some(({ isUnknown }) => isUnknown);
    const lacksProof = isUnproven && !own.some(({ name }) => approved.includes(name));
    let isDone = result.stopped === undefined;
    for (const [member, group] of queues[at] ?? []) {
      const place = { stopped: result.stopped, earlier, unproven, group, free };
      const held = member.wants ? hold(member, place) : undefined;
      if (held !== undefined) result.waiting.push([member, held]);
      else if (member.wants) {
        result.started.push(member);
        if (!member.holds) free -= 1;
      }
      isDone &&= held === undefined ? !member.wants && !member.holds : held.skips;
    }
    if ((!isDone || lacksProof) && at >= reached && earlier === undefined) {
      earlier = title;
      if (isDone) unproven = title;
    }
    if (earlier === undefined) result.reached += 1;
  }
  return result;
}
