/** The steps on workers now, in batches: those that come, those that go, then upgrades. Pure. */
import { advance, type Hold, type BatchMember, type Slot } from '../fleet/rollout/batch.ts';
import { groupsOf, selectorKey } from '../fleet/rollout/groups.ts';
import { sizeOf } from '../fleet/rollout/limits.ts';
import type { Strategy } from '../fleet/rollout/strategy.ts';
import { type Action, type Held, MAX_UNHEALTHY, type SeenMachine } from './cluster.ts';
import { inDeletionOrder, mayRepair } from './pick.ts';
import { byVersion } from './refusals.ts';
import {
  beforeReplacement,
  joinChain,
  keptAs,
  reconfiguredFor,
  removalChain,
  removalLimit,
  replacedFor,
  replacement,
  silenceOf,
  upgradeChain,
  type Turn,
  type PlanState,
} from './plan-state.ts';

export interface WorkersTurn extends Turn {
  /** Some have not the version that they are to have, so the control plane must not go further ahead. */
  readonly isBehind: boolean;
}

/** One of up to ten at a time, and none may fail. */
const FEW: Strategy = { type: 'Progressive', maxConcurrency: '10%' };

/** `current` is the version of the control plane, which all of it has. */
export function workersTurn(state: PlanState, current: string): WorkersTurn {
  const { wanted } = state;
  const { workers } = state.lists;
  const joins = join(state, current);
  const leaving: SeenMachine[] = [];
  const staying: SeenMachine[] = [];
  for (const one of workers) (!wanted.has(one.name) || one.leaving === true ? leaving : staying).push(one);
  const removals = remove(state, leaving, current);
  const upgrades = upgrade(state, staying, current);
  const held = [...joins.held, ...removals.held, ...upgrades.held];
  const chains = [joins.chains, removals.chains, upgrades.chains].find((some) => some.length > 0) ?? [];
  const isBehind = upgrades.isBehind || leaving.some(({ kubelet }) => kubelet !== current);
  return { chains, held, isBehind };
}

function join(state: PlanState, current: string): Turn {
  const turns = state.lists.absent.flatMap(({ name, role, kubeletVersion }) => {
    if (role !== 'worker') return [];
    return joinChain(state, name, {
      phase: 'join',
      to: versionFor(kubeletVersion, current),
      reason: 'the file has it',
    });
  });
  return { chains: turns.flatMap(({ chains }) => chains), held: turns.flatMap(({ held }) => held) };
}

/** A worker may stay behind its cluster, but not be ahead of it. */
function versionFor(own: string | undefined, current: string): string {
  return own !== undefined && byVersion(own, current) < 0 ? own : current;
}

/** All or nothing. */
function remove(state: PlanState, leaving: readonly SeenMachine[], current: string): Turn {
  const { policy, wanted } = state;
  const { workers } = state.lists;
  const marked = leaving.filter((one) => one.leaving === true);
  const limit = leaving.length === marked.length ? undefined : removalLimit(state);
  const held: Held[] = limit === undefined ? [] : [{ reason: limit }];
  const order = inDeletionOrder(
    leaving.map((machine) => {
      const { name, ageDays, ready, leaving: deleting = false } = machine;
      return { machine, name, ageDays, deleting, healthy: ready === true };
    }),
    'Oldest',
  );
  const places = Math.max(1, sizeOf((policy.workers ?? FEW).maxConcurrency, workers.length, workers.length, 'native'));
  const able = limit !== undefined ? marked : order.slice(0, places).map(({ machine }) => machine);
  const chainFor = (machine: SeenMachine): readonly Action[] => {
    const { name } = machine;
    const chain = removalChain(state, machine, 'the file does not have it');
    const to = versionFor(wanted.get(name)?.kubeletVersion, current);
    // What was begun with a machine of the file continues with a new one.
    return replacedFor(state, machine, to) === undefined ? chain : replacedBy(chain, name, to);
  };
  return { chains: able.map(chainFor), held };
}

function replacedBy(leaving: readonly Action[], host: string, to: string): readonly Action[] {
  return replacement(leaving, host, { phase: 'join', to, reason: 'the file has it' });
}

interface Upgraded extends BatchMember {
  readonly machine: SeenMachine;
  readonly labels: NonNullable<SeenMachine['labels']>;
  readonly to: string;
  /** Why a new machine takes its place. */
  readonly replaced: string | undefined;
}

function upgrade(state: PlanState, workers: readonly SeenMachine[], current: string): WorkersTurn {
  const { policy, wanted } = state;
  // What breaks one worker may break the next: unlike clusters, they are alike.
  const strategy = { maxFailures: 0, ...(policy.workers ?? FEW) };
  const members = workers.map((machine): Upgraded => {
    const { name, labels = {}, kubelet, cordon, failed, ready } = machine;
    const to = versionFor(wanted.get(name)?.kubeletVersion, current);
    const replaced = replacedFor(state, machine, to);
    const isChanged = reconfiguredFor(state, machine, to) !== undefined;
    const isDone = kubelet === to && replaced === undefined && !isChanged;
    const hasFailed = !isDone && failed?.to === to;
    const holds = cordon === 'curlew' && !hasFailed;
    const rollout = hasFailed ? 'Failed' : isDone && !holds ? 'Succeeded' : holds ? 'Progressing' : 'ToApply';
    const isProven = isDone && !holds && ready === true;
    const wants = !isDone && !hasFailed;
    return { machine, labels, to, replaced, state: rollout, holds, wants, isProven, isMeant: true };
  });
  const broken = members.filter(({ machine: { ready, cordon } }) => ready !== true && cordon !== 'curlew');
  const threshold = policy.maxUnhealthy ?? MAX_UNHEALTHY;
  // One always may, unless the upgrade may have broken it.
  const isOne = policy.maxUnhealthy === undefined && broken.length === 1 && broken[0]?.wants === true;
  const stopped =
    isOne || mayRepair({ total: workers.length, unhealthy: broken.length, threshold })
      ? undefined
      : `${broken.length} of ${workers.length} workers are not ready`;
  const groups = groupsOf(members, { rules: strategy.groups ?? [], size: strategy.groupSize });
  advance(groups, strategy, {
    rules: 'native',
    reached: 0,
    unresolved: [],
    stopped,
    mayStayUnproven: () => false,
    hold: holdOf,
    unproven: ({ group }) => `group ${selectorKey(group)}`,
  });
  const chains = [];
  const held: Held[] = [];
  let isBehind = false;
  let isReplacing = false;
  for (const { machine, to, replaced, wants, holds, hold, state: rollout } of members) {
    const { name: host, failed, ready } = machine;
    held.push(...keptAs(state, machine));
    if (!wants && !holds && rollout !== 'Failed') {
      if (ready !== true) held.push({ host, reason: 'it is not ready' });
      continue;
    }
    isBehind ||= holds || machine.kubelet !== to;
    const chain =
      replaced === undefined
        ? upgradeChain(state, machine, to, 'its control plane has this version')
        : replacedBy(removalChain(state, machine, replaced), host, to);
    const waits =
      replaced === undefined
        ? holds
          ? undefined
          : hold?.message
        : (hold?.message ?? (isReplacing ? 'one machine is replaced at a time' : beforeReplacement(state, host)));
    const isUpgraded = chain.every(({ phase }) => phase === 'uncordon');
    const reason =
      rollout === 'Failed'
        ? `its upgrade to ${to} has failed: ${failed?.reason ?? ''}`
        : !machine.answers
          ? silentReason(state, machine, to)
          : isUpgraded && ready !== true
            ? 'it has its version, and is not ready yet'
            : waits;
    if (reason === undefined) {
      isReplacing ||= replaced !== undefined;
      chains.push(chain);
    } else held.push({ host, reason });
  }
  return { chains, held, isBehind };
}

/** The control plane goes past it by one version; the next one could be too far ahead of its kubelet. */
function silentReason({ desired }: PlanState, machine: SeenMachine, to: string): string {
  const { kubelet = '' } = machine;
  const next = to === desired.version ? '' : `, and the cluster goes no further than ${to} while it has ${kubelet}`;
  return `${silenceOf(machine)}${next}: turn it on, or curlew machine remove takes it out of the cluster`;
}

/** Why a worker that is not under way waits. */
function holdOf(member: Upgraded, { stopped, earlier, free }: Slot): Hold | undefined {
  if (!member.machine.answers) return { reason: 'Unreachable', message: silenceOf(member.machine), skips: true };
  if (stopped !== undefined) return { reason: 'Stopped', message: stopped, skips: false };
  if (earlier !== undefined) return { reason: 'Group', message: `${earlier} is not done`, skips: false };
  return free <= 0 && !member.holds ? { reason: 'Batch', message: 'the batch is full', skips: false } : undefined;
}
