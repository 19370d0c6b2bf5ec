/** The steps on control planes now: one at a time, and never so that etcd or the last API server is away. Pure. */
import type { Action, Held, SeenMachine } from './cluster.ts';
import { mayRestart, quorumAfter } from './etcd.ts';
import { pickControlPlane } from './pick.ts';
import {
  beforeReplacement,
  chainOf,
  heldTurn,
  isLeftOver,
  joinChain,
  keptAs,
  EMPTY_TURN,
  removalChain,
  reconfiguredFor,
  removalLimit,
  replacedFor,
  replacement,
  silenceOf,
  upgradeChain,
  type Turn,
  type PlanState,
} from './plan-state.ts';

const ZONE = 'topology.kubernetes.io/zone';
const NOT_WANTED = 'the file does not have it';

/** `to` is undefined where no control plane runs yet. What was drained for `next` is left as it is. */
export function controlPlaneTurn(state: PlanState, to: string | undefined, next?: string): Turn {
  if (to === undefined) return init(state);
  if (state.members === undefined) return heldTurn(undefined, 'the members of etcd could not be listed');
  const held = [];
  for (const turn of turns(state, to, next)) {
    if (turn.chains.length > 0) return turn;
    held.push(...turn.held);
  }
  return { ...EMPTY_TURN, held };
}

/** Steps in the order of their urgency: what is broken and to go, what has begun, then what comes, goes, and is upgraded. */
function* turns(state: PlanState, to: string, next: string | undefined): Iterable<Turn> {
  const { wanted, members = [] } = state;
  const { controlPlanes } = state.lists;
  const running = new Set(controlPlanes.map(({ name }) => name));
  for (const { name } of members) {
    if (name !== '' && !running.has(name) && !wanted.has(name)) yield removeOrphan(state, name);
  }
  const leaving = controlPlanes.filter((one) => !wanted.has(one.name) || one.leaving === true);
  for (const one of leaving) if (one.leaving === true || !isHealthy(state, one)) yield leave(state, one);
  const staying = controlPlanes.filter((one) => !leaving.includes(one));
  const begun = staying.find((one) => {
    return (
      one.apiServer !== one.kubelet || (one.cordon === 'curlew' && (one.apiServer !== to || one.cordonFor !== next))
    );
  });
  if (begun !== undefined) {
    yield upgrade(state, begun, { to, isBegun: true });
    return;
  }
  const joining = state.lists.absent.filter(({ role }) => role === 'control-plane');
  const started = joining.filter(({ name }) => hasBegun(state, name));
  for (const { name } of started.length > 0 ? started : joining) yield join(state, name, to);
  if (joining.length > 0) return;
  const [first] = leaving;
  if (first !== undefined) {
    yield leave(state, first);
    return;
  }
  const outdated = pickControlPlane(
    staying.map((machine) => {
      const { name, ageDays, apiServer, labels = {} } = machine;
      return {
        machine,
        name,
        ageDays,
        zone: labels[ZONE],
        outdated: apiServer !== to || reconfiguredFor(state, machine, to) !== undefined,
        healthy: isHealthy(state, machine),
      };
    }),
  );
  if (outdated?.outdated === true) yield upgrade(state, outdated.machine, { to, isBegun: false });
  for (const one of staying) {
    if (!isHealthy(state, one)) yield heldTurn(one.name, unhealthyReason(state, one));
  }
}

/** A new machine for one that only its provider can change. What keeps it holds nothing else: the cluster works as it is. */
export function replaceControlPlane(state: PlanState, to: string): Turn {
  const held: Held[] = [];
  for (const one of state.lists.controlPlanes) {
    held.push(...keptAs(state, one));
    const reason = replacedFor(state, one, to);
    if (reason === undefined) continue;
    const { chains, held: obstacles } = removeControlPlane(state, one, reason);
    const waits = beforeReplacement(state, one.name);
    if (waits !== undefined) held.push({ host: one.name, reason: waits });
    else if (chains.length === 0)
      held.push(...obstacles.map((why) => ({ ...why, reason: `${reason}, but ${why.reason}` })));
    else {
      const join = { phase: 'join', to, reason: 'the file has it' } as const;
      return { chains: chains.map((chain) => replacement(chain, one.name, join)), held };
    }
  }
  return { ...EMPTY_TURN, held };
}

function isHealthy({ members = [] }: PlanState, { name, ready }: SeenMachine): boolean {
  return ready === true && members.some((one) => one.name === name && one.healthy === true && one.learner !== true);
}

/** A machine without a member of etcd is no control plane: a repair would count it among the unhealthy ones, and wait for its machine. */
function unhealthyReason({ members = [] }: PlanState, { name, ready }: SeenMachine): string {
  if (ready === true || members.some((one) => one.name === name)) return 'the control plane is not healthy: repair it';
  return `it is no longer a control plane, as after a restore of etcd: remove its Node on another one (curlew node remove ${name} --yes); reset or installed again, it then joins`;
}

function hasBegun({ members = [], machines, desired }: PlanState, name: string): boolean {
  return members.some((one) => one.name === name) || machines.get(name)?.cluster === desired.name;
}

function leave(state: PlanState, machine: SeenMachine): Turn {
  const limit = machine.leaving === true ? undefined : removalLimit(state);
  return limit === undefined ? removeControlPlane(state, machine, NOT_WANTED) : heldTurn(undefined, limit);
}

/** A member of etcd whose machine is no longer a Node. */
export function removeOrphan({ members = [] }: PlanState, name: string): Turn {
  const { safe } = quorumAfter(members, { remove: name });
  if (!safe) return heldTurn(name, 'etcd has a member of a machine that is gone, and would lose its quorum without it');
  return chainOf([{ host: name, phase: 'remove-member', reason: 'its machine is gone' }]);
}

/** Only where another one is healthy, and etcd keeps its quorum. */
export function removeControlPlane(state: PlanState, machine: SeenMachine, reason: string): Turn {
  const { name } = machine;
  const { members = [] } = state;
  const { controlPlanes } = state.lists;
  if (!controlPlanes.some((one) => one.name !== name && isHealthy(state, one))) {
    return heldTurn(name, 'no other control plane is healthy, so it cannot be removed');
  }
  if (members.some((one) => one.name === name)) {
    const { safe, voting, quorum } = quorumAfter(members, { remove: name });
    if (!safe)
      return heldTurn(
        name,
        `etcd would lose its quorum without it: ${quorum} of ${voting} members must be healthy, and none a learner`,
      );
  }
  return chainOf(removalChain(state, machine, reason));
}

function join(state: PlanState, name: string, to: string): Turn {
  const { members = [], machines } = state;
  const isMember = members.some((one) => one.name === name);
  if (isMember && isLeftOver(state, name) && machines.get(name)?.answers === true) return removeOrphan(state, name);
  const others = members.filter((one) => one.name !== name);
  // A member that votes already is no further one.
  const isVoter = members.some((one) => one.name === name && one.learner !== true);
  const safe = isVoter || quorumAfter(others, { add: true }).safe;
  if (!safe) return heldTurn(name, 'etcd could lose its quorum by one more member: repair those that are not healthy');
  const { joined = false, begun } = machines.get(name) ?? {};
  if (joined && begun === 'init') {
    return joinChain(state, name, { phase: 'init', to, reason: 'it has not ended without a failure' });
  }
  return joinChain(state, name, { phase: 'join', to, reason: 'the file has it' });
}

function init(state: PlanState): Turn {
  const { desired, machines } = state;
  const control = desired.machines.filter(({ role }) => role === 'control-plane');
  // Whether a host that does not answer is part of a cluster is unknown.
  const silent = control.find(({ name }) => {
    const machine = machines.get(name);
    return machine?.answers !== true && machine?.toCreate === undefined;
  });
  if (silent !== undefined)
    return heldTurn(silent.name, 'it does not answer, and could be part of the cluster already');
  const [begun, ...others] = [...machines.values()].filter(({ cluster, joined }) => joined || cluster === desired.name);
  const host = begun?.name ?? control[0]?.name ?? '';
  if (others.length > 0 || !control.some(({ name }) => name === host)) {
    return heldTurn(
      undefined,
      `hosts are part of ${desired.name}, but no control plane of it runs: start one, or restore etcd on one (curlew help cluster.md)`,
    );
  }
  return joinChain(state, host, { phase: 'init', to: desired.version, reason: 'the first control plane' });
}

function upgrade(
  state: PlanState,
  machine: SeenMachine,
  goal: { readonly to: string; readonly isBegun: boolean },
): Turn {
  const { name, answers, failed, ready } = machine;
  const { to, isBegun } = goal;
  const { members = [] } = state;
  const { controlPlanes } = state.lists;
  if (!answers) return heldTurn(name, silenceOf(machine));
  if (failed?.to === to) return heldTurn(name, `its upgrade to ${to} has failed: ${failed.reason}`);
  const isFirst = controlPlanes.every(({ apiServer }) => apiServer !== to);
  const chain = upgradeChain(state, machine, to, isFirst ? 'the first control plane' : 'the next control plane');
  if (chain.every(({ phase }) => phase === 'uncordon')) {
    return ready === true ? chainOf(chain) : heldTurn(name, 'it has its version, and is not ready yet');
  }
  const others = controlPlanes.filter((one) => one.name !== name);
  const broken = others.find((one) => !isHealthy(state, one));
  if (!isBegun && broken !== undefined) return heldTurn(name, `${broken.name} is not healthy: repair it first`);
  const isUp = members.some((one) => one.name === name && one.healthy === true);
  if ((isUp || !isBegun) && !mayRestart(members, name)) {
    return heldTurn(name, `etcd would lose its quorum while it restarts: it has ${members.length} members`);
  }
  if (!isFirst) return chainOf(chain);
  const images = missingImages(state, to);
  if (images.length > 0) return { chains: images.map((one) => [one]), held: [] };
  const snapshot: Action = { host: name, phase: 'snapshot', to, reason: 'etcd can be restored from it' };
  return chainOf(state.snapshot === to ? chain : [snapshot, ...chain]);
}

/** With the first control plane, kubeadm gives every node the next CoreDNS and kube-proxy. A node that is away gets its images later. */
function missingImages({ machines, wanted }: PlanState, to: string): readonly Action[] {
  return [...machines.values()].flatMap(({ name, joined, answers, leaving, images = [] }): readonly Action[] => {
    const gets = joined && answers && leaving !== true && wanted.has(name) && !images.includes(to);
    return gets
      ? [{ host: name, phase: 'images', to, reason: 'the upgrade of the cluster needs them on every node' }]
      : [];
  });
}
