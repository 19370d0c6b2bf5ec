/** Which clusters of an add-on begin now: group after group, at most so many at once, and so many failures. Pure. */
import { groupBy } from '../../core/group-by.ts';
import { selectorKey, type Group } from './groups.ts';
import { sizeOf, type Rules } from './limits.ts';
import { failuresOf, isFailure, isMandatory, type State, type Strategy } from './strategy.ts';

export interface BatchMember {
  readonly state: State;
  /** It has a place in the batch: it is under way, or its success has not lasted long enough. */
  readonly holds: boolean;
  /** It waits for something new. */
  readonly wants: boolean;
  /** It has what is rolled out, and that has lasted long enough; it may be offline since. */
  readonly isProven: boolean;
  /** It is to have what is rolled out: what only goes proves nothing. */
  readonly isMeant: boolean;
  /** Why it waits. {@link advance} sets it; one that wants something and is not held begins. */
  hold?: Hold | undefined;
}

/** Where a member waits. */
export interface Slot {
  /** Why no member may begin. */
  stopped: string | undefined;
  /** Title of the first stage before this one that is not done. */
  earlier: string | undefined;
  /** What is missing, if that stage is not done only because what is rolled out is on none of its members. */
  unproven: string | undefined;
  group: string;
  /** Places that are free. */
  free: number;
  /** Places for what holds one by an earlier content, and wants something new: a strategy that was narrowed has fewer than there are. */
  kept: number;
}

export interface Hold {
  readonly reason: string;
  readonly message: string;
  /** Others do not wait for this member. */
  readonly skips: boolean;
  /** It waits for what a person must approve, which the message names. */
  readonly asks?: boolean;
}

/** A failure on a cluster that is gone, or has not succeeded since. */
export interface Unresolved {
  readonly group: string;
  readonly isGone: boolean;
}

/** Failures that are not of members, and whose rules say how many may fail. */
interface Failures {
  readonly rules: Rules;
  readonly unresolved: readonly Unresolved[];
  /** Further failures of unknown clusters, which count in the last stage. */
  readonly assumed?: number;
}

/** A mandatory group in which no cluster has proven what is rolled out. */
export interface Unproven<M> {
  readonly group: Pick<Group<M>, 'name' | 'index'>;
  readonly members: readonly M[];
}

interface Stage<M> {
  readonly title: string;
  /** Parts of a group that is cut by size have one number: how many parts there are changes with the clusters. */
  readonly number: number;
  readonly allowed: number;
  readonly unresolved: number;
  readonly groups: readonly Group<M>[];
  /** All parts of a mandatory group: one of the members that are to have what is rolled out must have proven it. */
  readonly proof: readonly Group<M>[];
}

function countIn<M>(groups: readonly Group<M>[], counts: (member: M) => boolean = () => true): number {
  let count = 0;
  for (const { members } of groups) for (const member of members) if (counts(member)) count += 1;
  return count;
}

/** What comes one after the other, and how many may fail in each. */
function stagesOf<M>(
  groups: readonly Group<M>[],
  strategy: Strategy,
  { rules, unresolved, assumed = 0 }: Failures,
): readonly Stage<M>[] {
  const { type = 'All' } = strategy;
  let remaining = unresolved;
  /** The first stage of a group has all of it. */
  const unresolvedIn = (own: readonly Group<M>[]): readonly Unresolved[] => {
    const matches = remaining.filter(({ group }) => own.some(({ name }) => name === group));
    remaining = remaining.filter((one) => !matches.includes(one));
    return matches;
  };
  const titleOf = (group: Group<M>): string => `group ${selectorKey(group)}`;
  let stage = -1;
  let last: string | undefined;
  const numberOf = (name: string): number => {
    if (name !== last) stage += 1;
    last = name;
    return stage;
  };
  const first = groups.filter((group) => isMandatory(strategy, group));
  const rest = groups.filter((group) => !isMandatory(strategy, group));
  const named = groupBy(first, ({ name }) => name);
  const mandatory = first.map((group): Stage<M> => {
    // The last part of a group that is cut by size answers for all parts.
    const parts = group.name === '' ? [group] : (named.get(group.name) ?? []);
    return {
      title: titleOf(group),
      number: numberOf(group.name),
      allowed: 0,
      unresolved: unresolvedIn([group]).length,
      groups: [group],
      proof: parts.at(-1) === group ? parts : [],
    };
  });
  last = undefined;
  const other = (title: string, own: readonly Group<M>[]): Stage<M> => {
    const failures = unresolvedIn(own);
    const unnamed = own.at(-1) === rest.at(-1) ? assumed : 0;
    const total = countIn(own) + failures.filter(({ isGone }) => isGone).length + unnamed;
    const allowed = type === 'All' ? Infinity : failuresOf(strategy, total, rules);
    const number = numberOf(own[0]?.name ?? '');
    return { title, number, allowed, unresolved: failures.length + unnamed, groups: own, proof: [] };
  };
  const others =
    type === 'ProgressivePerGroup' ? rest.map((group) => other(titleOf(group), [group])) : [other('the rest', rest)];
  return [...mandatory, ...others];
}

/**
 * Sets why each member that wants something is held, if it is. `reached` stages were done before, where all parts of a group that is cut by
 * size count as one: what waits in them now comes with the last stage. `mayStayUnproven` gets a group, `hold` answers why a member
 * must wait, and `unproven` says what holds a mandatory group that has proven nothing. A percentage of `maxConcurrency` is of the members
 * outside mandatory groups, or of all if there are none. Returns why nothing begins, and how many stages are done.
 */
export function advance<M extends BatchMember>(
  groups: readonly Group<M>[],
  strategy: Strategy,
  progress: Failures & {
    readonly reached: number;
    readonly stopped: string | undefined;
    readonly mayStayUnproven: (group: Pick<Group<M>, 'name' | 'index'>) => boolean;
    readonly hold: (member: M, place: Slot) => Hold | undefined;
    readonly unproven: (group: Unproven<M>) => string;
  },
): { readonly stopped: string | undefined; readonly reached: number } {
  const stages = stagesOf(groups, strategy, progress);
  const total = countIn(groups.filter((group) => !isMandatory(strategy, group))) || countIn(groups);
  const free = Math.max(1, sizeOf(strategy.maxConcurrency, total, Infinity, 'native'));
  const place: Slot = {
    stopped: progress.stopped,
    earlier: undefined,
    unproven: undefined,
    group: '',
    free,
    kept: free,
  };
  for (const { title, allowed, unresolved, groups: own } of stages) {
    const failed = countIn(own, ({ state }) => isFailure(state)) + unresolved;
    const clause = unresolved === 1 ? 'is gone or has not succeeded since' : 'are gone or have not succeeded since';
    const note = unresolved === 0 ? '' : `; ${unresolved} of these clusters ${clause}: retry the add-on, or change it`;
    if (failed > allowed) place.stopped ??= `${title}: ${failed} failed, and ${allowed} may${note}`;
    place.free -= countIn(own, ({ holds }) => holds);
    place.kept -= countIn(own, ({ holds, wants }) => holds && !wants);
  }
  const isReached = ({ number }: Stage<M>): boolean => number < progress.reached;
  const only = (isNew: boolean) => (group: Group<M>) => {
    return { ...group, members: group.members.filter(({ wants, holds }) => (wants && !holds) === isNew) };
  };
  const late = stages.filter(isReached).flatMap(({ groups: own }) => own.map(only(true)));
  let reached = (stages.at(-1)?.number ?? -1) + 1;
  for (const [at, stage] of stages.entries()) {
    const { title, number, groups: own, proof } = stage;
    const present = isReached(stage) ? own.map(only(false)) : own;
    const queue = at === stages.length - 1 ? [...present, ...late] : present;
    const isDone = begin(queue, place, progress.hold) && place.stopped === undefined;
    const meant = proof.flatMap(({ members }) => members.filter(({ isMeant }) => isMeant));
    const isWaived = own.some(progress.mayStayUnproven);
    const isProven = isWaived || meant.length === 0 || meant.some((member) => member.isProven);
    if (!(isDone && isProven) && !isReached(stage) && place.earlier === undefined) {
      place.earlier = title;
      if (isDone)
        place.unproven = progress.unproven({ group: own[0] ?? { name: title, index: number }, members: meant });
      reached = number;
    }
  }
  return { stopped: place.stopped, reached };
}

/** Whether all members are done, or are held for a reason that concerns only them. */
function begin<M extends BatchMember>(
  groups: readonly Group<M>[],
  place: Slot,
  hold: (member: M, place: Slot) => Hold | undefined,
): boolean {
  let isDone = true;
  for (const { name, members } of groups) {
    place.group = name;
    for (const member of members) {
      if (member.wants) member.hold = hold(member, place);
      if (member.wants && member.hold === undefined) place[member.holds ? 'kept' : 'free'] -= 1;
      isDone &&= member.hold?.skips ?? !(member.wants || member.holds);
    }
  }
  return isDone;
}
