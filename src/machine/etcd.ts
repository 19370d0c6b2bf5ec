/** Whether etcd has a quorum, and keeps it when a member comes, goes or restarts. Pure. */

export interface EtcdMember {
  /** Name of its machine; empty while it starts for the first time. */
  readonly name: string;
  readonly healthy?: boolean;
  /** It says something, be it that it is not healthy. */
  readonly answers?: boolean;
  readonly learner?: boolean;
  /** False: a member without a machine, which counts as healthy unless it raises an alarm. */
  readonly machine?: boolean;
  readonly alarm?: boolean;
}

export interface Quorum {
  readonly voting: number;
  readonly quorum: number;
  /** The change leaves enough members that work, and no learner is among them. */
  readonly safe: boolean;
}

function works({ name, healthy, machine, alarm }: EtcdMember): boolean {
  if (name === '') return false;
  return machine === false ? alarm !== true : healthy === true;
}

/**
 * Members after a change, by the rule of KubeadmControlPlane: a new member counts as not working where there are two or more, and a
 * member that has no name yet as a learner.
 */
export function quorumAfter(
  members: readonly EtcdMember[],
  change: { readonly remove?: string | undefined; readonly add?: boolean },
): Quorum {
  const add = change.add === true;
  const remaining = members.filter(({ name }) => name === '' || name !== change.remove);
  const learners = remaining.filter(({ name, learner }) => name === '' || learner === true).length;
  const voting = remaining.length - learners + (add ? 1 : 0);
  const broken = remaining.filter((member) => !works(member)).length + (add && members.length > 1 ? 1 : 0);
  const quorum = Math.floor(voting / 2) + 1;
  return { voting, quorum, safe: voting - broken >= quorum && learners === 0 };
}

/** How many of this many members may fail at once: `1 failure`. */
export function survived(voting: number): string {
  const failures = Math.floor((voting - 1) / 2);
  return failures === 0 ? 'no failure' : `${failures} failure${failures === 1 ? '' : 's'}`;
}

/** Whether the others keep the quorum while this one restarts. A single member has no others: its API is away meanwhile. */
export function mayRestart(members: readonly EtcdMember[], name: string): boolean {
  const others = members.filter((member) => member.name !== name);
  if (members.length === 1 && others.length === 0) return true;
  const { voting, quorum } = quorumAfter(members, {});
  const isStarting = others.some((member) => member.name === '' || member.learner === true);
  return !isStarting && voting > 0 && others.filter(works).length >= quorum;
}

export interface EtcdView {
  /** Members as the one on this machine lists them; undefined if it does not answer. A healthy one answers a linearizable read, too. */
  readonly members: readonly EtcdMember[] | undefined;
  /** The member on this machine answers a linearizable read. */
  readonly agrees: boolean;
  /** The API server of the cluster answers a request that reads etcd. */
  readonly served: boolean;
}

/** Where the quorum is that a restore on this machine would contradict: with others here, or without this machine. */
export type QuorumPlace = 'here' | 'elsewhere' | 'none';

/** A list of members says nothing about a quorum: each member answers it from its own data. */
export function quorumPlace({ members = [], agrees, served }: EtcdView): QuorumPlace {
  if (agrees) return members.length > 1 ? 'here' : 'none';
  return served || members.some(({ healthy }) => healthy === true) ? 'elsewhere' : 'none';
}

const LOST_QUORUM = 'etcd has lost its quorum';

/** Whether this is what {@link lostQuorum} has said, be it on another machine. */
export function saysLostQuorum(text: string): boolean {
  return text.includes(LOST_QUORUM);
}

/** Says that etcd has no quorum, by the members that answer; undefined where enough of them do. */
export function lostQuorum(members: readonly EtcdMember[]): string | undefined {
  const voting = members.filter(({ learner }) => learner !== true);
  const silent = voting.filter(({ answers, healthy }) => (answers ?? healthy) !== true);
  const up = voting.length - silent.length;
  if (up >= Math.floor(voting.length / 2) + 1) return undefined;
  const names = silent.map(({ name }) => name || 'one that has just joined').join(' and ');
  return `${LOST_QUORUM}: ${up} of ${voting.length} members ${up === 1 ? 'answers' : 'answer'}, and ${names} ${silent.length === 1 ? 'does' : 'do'} not`;
}
