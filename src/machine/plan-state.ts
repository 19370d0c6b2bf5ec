/** A cluster while it is planned: what is seen, with the actions that the plan has so far taken as done. */
import type { Identity } from '../cluster/channel/channel.ts';
import { sizeOf } from '../fleet/rollout/limits.ts';
import type { Action, DesiredCluster, DesiredMachine, Held, Policy, SeenCluster, SeenMachine } from './cluster.ts';
import type { EtcdMember } from './etcd.ts';
import { byVersion } from './refusals.ts';
import { changedSettings, namedSettings } from './settings.ts';

/** Chains that may begin at the same time. The actions of one, on one host or once for the cluster, follow each other. */
export interface Turn {
  readonly chains: readonly (readonly Action[])[];
  readonly held: readonly Held[];
}

const MAX_REMOVALS = '10%';

export const EMPTY_TURN: Turn = { chains: [], held: [] };

export function chainOf(actions: readonly Action[]): Turn {
  return { chains: [actions], held: [] };
}

export function heldTurn(host: string | undefined, reason: string): Turn {
  return { chains: [], held: [{ ...(host !== undefined && { host }), reason }] };
}

interface Lists {
  /** Control planes that run, in the order of the file; those that it does not have are last. */
  readonly controlPlanes: readonly SeenMachine[];
  readonly workers: readonly SeenMachine[];
  /** Machines that go, or are to go. */
  readonly leaving: readonly SeenMachine[];
  /** Machines of the file that are not part of the cluster, or only in part: the same step is done there again. */
  readonly absent: readonly DesiredMachine[];
  /** The highest version of an API server: that of the cluster for kubeadm. Undefined: there is no cluster yet. */
  readonly version: string | undefined;
  readonly lowestWorker: string | undefined;
  /** A single machine has no other to which its pods could move. */
  readonly isAlone: boolean;
}

/** One loop: a plan asks once for each turn, and each of thousands of workers may have its own. */
function listsOf({ desired, machines, wanted }: PlanState): Lists {
  const controlPlanes: SeenMachine[] = [];
  const workers: SeenMachine[] = [];
  const leaving: SeenMachine[] = [];
  const [servers, kubelets] = [new Set<string>(), new Set<string>()];
  let joined = 0;
  for (const machine of machines.values()) {
    const { role, kubelet, apiServer } = machine;
    if (!machine.joined) continue;
    joined += 1;
    if (!wanted.has(machine.name) || machine.leaving === true) leaving.push(machine);
    if (role === 'worker') workers.push(machine);
    else if (apiServer !== undefined) controlPlanes.push(machine);
    if (role === 'worker' && kubelet !== undefined) kubelets.add(kubelet);
    else if (apiServer !== undefined) servers.add(apiServer);
  }
  return {
    controlPlanes,
    workers,
    leaving,
    absent: desired.machines.filter(({ name, role }) => {
      const machine = machines.get(name);
      if (machine?.joined !== true || (role === 'control-plane' && machine.apiServer === undefined)) return true;
      // An upgrade brings all that is missing, too.
      return machine.begun !== undefined && machine.leaving !== true && machine.kubelet === desired.version;
    }),
    version: [...servers].toSorted(byVersion).at(-1),
    lowestWorker: [...kubelets].toSorted(byVersion)[0],
    isAlone: joined === 1,
  };
}

export class PlanState {
  readonly desired: DesiredCluster;
  readonly seen: SeenCluster;
  readonly policy: Policy;
  readonly wanted: ReadonlyMap<string, DesiredMachine>;
  readonly machines: Map<string, SeenMachine>;
  readonly addons: Map<string, Identity>;
  members: readonly EtcdMember[] | undefined;
  snapshot: string | undefined;
  /** Machines with the settings of the file by what the plan does on them. */
  readonly configured = new Set<string>();
  #lists: Lists | undefined;

  constructor(desired: DesiredCluster, seen: SeenCluster, policy: Policy) {
    this.desired = desired;
    this.seen = seen;
    this.policy = policy;
    this.wanted = new Map(desired.machines.map((machine) => [machine.name, machine]));
    // Machines in the order of the file.
    const byName = new Map(seen.machines.map((machine) => [machine.name, machine]));
    const ours = desired.machines.flatMap(({ name }) => byName.get(name) ?? []);
    this.machines = new Map([...ours, ...seen.machines].map((machine) => [machine.name, machine]));
    this.addons = new Map(seen.addons);
    this.members = seen.members;
    this.snapshot = seen.snapshot;
  }

  /** Facts that a whole turn asks for: made once, and again after an action. */
  get lists(): Lists {
    this.#lists ??= listsOf(this);
    return this.#lists;
  }

  /** Takes an action as done. */
  apply({ host = '', phase, to = '', addon }: Action): void {
    this.#lists = undefined;
    const old = this.machines.get(host);
    const set = (change: Partial<SeenMachine>): void => {
      if (old !== undefined) this.machines.set(host, { ...old, ...change });
    };
    const role = this.wanted.get(host)?.role ?? old?.role;
    if (['init', 'join', 'upgrade', 'configure'].includes(phase)) this.configured.add(host);
    const versions = role === 'control-plane' ? { kubelet: to, apiServer: to } : { kubelet: to };
    switch (phase) {
      case 'create':
        return set({ answers: true, toCreate: undefined, exists: true, outdated: undefined });
      case 'init':
      case 'join': {
        if (role === 'control-plane') {
          this.members = [...(this.members ?? []).filter(({ name }) => name !== host), { name: host, healthy: true }];
        }
        return set({
          joined: true,
          begun: undefined,
          ready: true,
          cluster: this.desired.name,
          ...(role && { role }),
          ...versions,
        });
      }
      case 'snapshot':
        this.snapshot = to;
        return undefined;
      case 'images':
        return set({ images: [...(old?.images ?? []), to] });
      case 'drain':
        return set({ drained: true, cordon: old?.cordon ?? 'curlew', cordonFor: to });
      case 'upgrade':
        this.members = this.members?.map((one) => (one.name === host ? { ...one, healthy: true } : one));
        return set({ ready: true, ...versions });
      case 'mark':
        return set({ leaving: true });
      case 'repair':
      case 'configure':
        return set({ ready: true });
      case 'remove-member':
        this.members = this.members?.filter(({ name }) => name !== host);
        return undefined;
      case 'uncordon':
        return set({ cordon: undefined, drained: false });
      case 'reset':
        // It removes the bundle, too.
        return set({ cluster: undefined, drained: true, images: [] });
      case 'delete':
        return set({ answers: false, toCreate: 'it was deleted', cluster: undefined, images: [] });
      case 'delete-node':
        this.machines.delete(host);
        // A machine that the file has joins again.
        if (old !== undefined && this.wanted.has(host)) {
          const { answers, hostId, cluster, images = [], exists, outdated } = old;
          this.machines.set(host, { name: host, joined: false, answers, hostId, cluster, images, exists, outdated });
        }
        return undefined;
      case 'label':
        return undefined;
      case 'addon':
        this.addons.set(addon ?? '', { version: to });
    }
    return undefined;
  }
}

/** Why a machine is to get the settings of the file, once its cluster has the version of it; undefined where it has them. */
export function reconfiguredFor(
  { desired: { settings = {}, version }, policy: { named }, configured }: PlanState,
  machine: SeenMachine,
  to: string | undefined,
): string | undefined {
  const { name } = machine;
  if (to !== version || configured.has(name)) return undefined;
  const isNamed = name === named;
  if (isNamed && machine.settings === undefined && Object.keys(settings).length > 0)
    return 'it is not known which settings of the file it has';
  const { able, dropped } = changedSettings(settings, machine);
  if (able.length === 0 && !(isNamed && dropped.length > 0)) return undefined;
  const [set, lost] = [namedSettings(able), namedSettings(dropped)];
  if (able.length === 0) return `the file no longer has ${lost}`;
  return `the file has another ${set}${dropped.length > 0 ? `, and no longer ${lost}` : ''}`;
}

/** The actions by which a host whose turn it is gets a version. */
export function upgradeChain(state: PlanState, machine: SeenMachine, to: string, reason: string): readonly Action[] {
  const { name: host, kubelet, apiServer = to, images = [], cordon, drained } = machine;
  const done = kubelet === to && apiServer === to;
  const { isAlone } = state.lists;
  const settings = done ? reconfiguredFor(state, machine, to) : undefined;
  const actions: Action[] = [];
  if ((!done || settings !== undefined) && !images.includes(to))
    actions.push({ host, phase: 'images', to, reason: `the ${done ? 'change' : 'upgrade'} needs them` });
  if (!done && drained !== true && !isAlone)
    actions.push({ host, phase: 'drain', to, reason: 'its pods move before the kubelet restarts' });
  if (!done) actions.push({ host, phase: 'upgrade', to, reason });
  if (settings !== undefined) actions.push({ host, phase: 'configure', reason: settings });
  if (cordon === 'curlew' || (cordon === undefined && actions.some(({ phase }) => phase === 'drain'))) {
    actions.push({ host, phase: 'uncordon', reason: done ? 'it has its version' : 'it takes pods again' });
  }
  return actions;
}

/** Why no further removal may begin. With those under way, so that one removal after the other does not pass the limit. */
export function removalLimit({ policy, machines, lists }: PlanState): string | undefined {
  const { maxRemovals = MAX_REMOVALS, approvedRemovals = 0 } = policy;
  const most = Math.max(1, sizeOf(maxRemovals, machines.size, 1, 'native'), approvedRemovals);
  const { length } = lists.leaving;
  if (length <= most) return undefined;
  return `${length} machines would be removed, and ${most} may without approval: curlew cluster apply --approve-removals ${length} gives it`;
}

/** How a machine leaves: it keeps its mark until it is no longer a Node, so that this can be continued at any point. */
export function removalChain(state: PlanState, machine: SeenMachine, reason: string): readonly Action[] {
  const { name: host, answers, cluster, drained, leaving, joined } = machine;
  const actions: Action[] = [];
  if (joined && leaving !== true) actions.push({ host, phase: 'mark', reason });
  if (joined && drained !== true && answers) actions.push({ host, phase: 'drain', reason: 'its pods move first' });
  if (state.members?.some(({ name }) => name === host) === true) {
    actions.push({ host, phase: 'remove-member', reason: 'etcd must not wait for it' });
  }
  if (answers && cluster !== undefined)
    actions.push({ host, phase: 'reset', reason: 'it must not join again by itself' });
  if (joined) actions.push({ host, phase: 'delete-node', reason: 'it is no longer part of the cluster' });
  return actions;
}

/** Its Node was deleted, and its host was not reset: kubeadm does not join such a host. */
export function isLeftOver({ desired, machines }: PlanState, host: string): boolean {
  const { joined = false, cluster, attempted = false } = machines.get(host) ?? {};
  return !joined && cluster === desired.name && !attempted;
}

/** Why a machine that its provider does not have is not created: the cluster has it, so it may be there, or be lost. */
export function lostReason(
  { members = [] }: Pick<PlanState, 'members'>,
  { name, joined, toCreate, exists }: SeenMachine,
): string | undefined {
  if (toCreate === undefined || !(joined || members.some((one) => one.name === name))) return undefined;
  if (exists === true)
    return `${toCreate}, and the cluster has it: start it, or curlew machine repair deletes it and creates it again, curlew machine remove deletes it`;
  return `${toCreate}, and the cluster does: curlew machine repair creates it again, curlew machine remove forgets it`;
}

/** Why a new machine of its provider takes the place of one that answers, once its cluster has the version of the file. */
export function replacedFor(
  { wanted, desired }: Pick<PlanState, 'wanted' | 'desired'>,
  { name, exists, answers, outdated, kubelet }: SeenMachine,
  to: string,
): string | undefined {
  const { update, role } = wanted.get(name) ?? {};
  if (exists !== true || !answers || update === 'InPlaceOnly' || to !== desired.version) return undefined;
  return update === 'Replace' && role === 'worker' && kubelet !== to ? 'update: Replace' : outdated;
}

/** The reason why a machine is not replaced by its provider. */
export function keptAs(
  { wanted, desired }: Pick<PlanState, 'wanted' | 'desired'>,
  { name, outdated }: SeenMachine,
): readonly Held[] {
  if (outdated === undefined) return [];
  const { update, kubeletVersion = desired.version } = wanted.get(name) ?? {};
  if (update === 'InPlaceOnly')
    return [{ host: name, reason: `${outdated}, and update: InPlaceOnly never replaces a machine` }];
  if (kubeletVersion === desired.version) return [];
  const reason = `${outdated}, and a new machine would have ${desired.version}, not its kubeletVersion ${kubeletVersion}: remove that, and it is replaced`;
  return [{ host: name, reason }];
}

/** The condition under which a machine is replaced: it goes before the new one comes, so all others must work. */
export function beforeReplacement({ desired, machines }: PlanState, host: string): string | undefined {
  const broken = desired.machines.find(({ name }) => name !== host && machines.get(name)?.ready !== true);
  return broken && `it is replaced once ${broken.name} is ready`;
}

/** How a new machine of its provider takes the place of one that has left, or leaves by these actions. */
export function replacement(
  leaving: readonly Action[],
  host: string,
  join: { readonly phase: 'init' | 'join'; readonly to: string; readonly reason: string },
): readonly Action[] {
  return [
    // What is deleted needs no reset.
    ...leaving.filter(({ phase }) => phase !== 'reset'),
    { host, phase: 'delete', reason: 'a new machine takes its place' },
    { host, phase: 'create', reason: 'it takes the place of the old one' },
    { host, phase: 'images', to: join.to, reason: `the ${join.phase} needs them` },
    { host, ...join },
  ];
}

/** Why nothing can be done on a machine that is not reached. */
export function silenceOf(machine: Pick<SeenMachine, 'silence'> | undefined): string {
  return machine?.silence ?? 'it does not answer';
}

/** How a machine becomes part of the cluster. */
export function joinChain(
  state: PlanState,
  host: string,
  action: { readonly phase: 'init' | 'join'; readonly to: string; readonly reason: string },
): Turn {
  const machine = state.machines.get(host);
  const { to } = action;
  const images: Action = { host, phase: 'images', to, reason: `the ${action.phase} needs them` };
  if (machine?.toCreate !== undefined) {
    const lost = lostReason(state, machine);
    if (lost !== undefined) return heldTurn(host, lost);
    return chainOf([{ host, phase: 'create', reason: machine.toCreate }, images, { host, ...action }]);
  }
  if (machine?.answers !== true) return heldTurn(host, silenceOf(machine));
  if (machine.failed?.to === to) return heldTurn(host, `its ${action.phase} has failed: ${machine.failed.reason}`);
  // What was interrupted continues: a machine that has left is not taken again.
  const isOld = machine.outdated !== undefined || isLeftOver(state, host);
  if (isOld && replacedFor(state, machine, to) !== undefined) return chainOf(replacement([], host, action));
  const sent = machine.images?.includes(to) === true ? [] : [images];
  if (action.phase === 'join' && isLeftOver(state, host)) {
    return chainOf([...sent, { host, phase: 'reset', reason: 'its node was deleted, and it cannot join before' }]);
  }
  return chainOf([...sent, { host, ...action }]);
}
