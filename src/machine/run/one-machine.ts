/** Plans about one machine of a cluster: what is to do on it for the file, how it leaves, and how it is repaired. Pure. */
import { type Action, type Held, MAX_UNHEALTHY, type SeenCluster, type SeenMachine, type Step } from '../cluster.ts';
import { mayRepair } from '../pick.ts';
import { splitRefusals } from '../refusals.ts';
import { removalTurns } from '../removal.ts';
import type { WrittenCluster } from './cluster-file.ts';
import { runsElsewhere } from './provided-hosts.ts';
import { silenceOf } from '../plan-state.ts';
import type { BundleFacts, ClusterLook, HostLook } from './look.ts';
import { planOf, shownHost, type Choices, type Done, type PlannedCluster } from './planned-cluster.ts';

export interface PlannedMachine extends PlannedCluster {
  readonly machine: string;
}

interface Leaving {
  readonly chain: readonly Action[];
  readonly refused: readonly Held[];
}

const NO_CHAIN: Leaving = { chain: [], refused: [] };

interface WantedMachine {
  readonly cluster: WrittenCluster;
  readonly name: string;
  readonly bundle: BundleFacts | undefined;
}

/** The steps that the file needs on this machine. It comes before its equals; what must come before it on others is in `waits`. */
export function planMachine(wanted: WantedMachine, look: ClusterLook, choices: Choices = {}): PlannedMachine {
  const { cluster, name } = wanted;
  const { machines } = cluster;
  const first = [...machines.filter((one) => one.name === name), ...machines.filter((one) => one.name !== name)];
  // The first control plane of a new cluster is that of the file.
  const ordered = look.speaker === undefined ? machines : first;
  return narrowed(planFor(wanted, { ...cluster, machines: ordered }, look, choices), wanted, look);
}

/** A mistake of another worker holds only what needs that one. */
function planFor(
  { name, bundle }: WantedMachine,
  cluster: WrittenCluster,
  look: ClusterLook,
  choices: Choices = {},
): PlannedCluster {
  const plan = planOf(cluster, look, bundle, choices);
  const { shared, own } = splitRefusals(plan.refused, cluster.machines, look.seen.machines);
  return { ...plan, refused: [...shared, ...own.filter(({ host }) => host === name)] };
}

/** The same for one that is part of the cluster already. */
export function planUpgraded(wanted: WantedMachine, look: ClusterLook): PlannedMachine {
  const { name } = wanted;
  const plan = planMachine(wanted, look, { named: name });
  const isKnown = look.busy.length + look.unasked.length === 0;
  if (!isKnown || look.seen.machines.some((one) => one.name === name && one.joined)) return plan;
  const reason = 'it is not in the cluster: curlew cluster apply lets it join';
  return { ...plan, steps: [], refused: [...plan.refused, { host: name, reason }] };
}

function narrowed(
  plan: PlannedCluster,
  { cluster, name }: WantedMachine,
  { seen, silent }: ClusterLook,
): PlannedMachine {
  const isFirst = plan.steps.some(({ host, phase }) => host === name && phase === 'snapshot');
  const steps = plan.steps.filter(({ host, phase }) => {
    // The first control plane is upgraded once all nodes have the images; one that cannot be asked gets them before anything is known.
    return host === name || (phase === 'images' && (isFirst || host === silent?.name));
  });
  const isDone = isAtTarget(cluster, seen, name);
  return {
    ...plan,
    machine: name,
    hosts: plan.hosts.filter((one) => one.name === name),
    steps,
    held: plan.held.filter(({ host }) => {
      if (host === name) return true;
      // What another machine waits for keeps this one from being as the file says, if nothing can be done on it.
      return !isDone && (host === undefined || steps.length === 0);
    }),
  };
}

function isAtTarget({ machines, version }: WrittenCluster, seen: SeenCluster, name: string): boolean {
  const { kubeletVersion = version } = machines.find((one) => one.name === name) ?? {};
  const machine = seen.machines.find((one) => one.name === name);
  if (machine?.joined !== true) return false;
  const { role, kubelet, apiServer, cordon } = machine;
  return kubelet === kubeletVersion && (role === 'worker' || apiServer === version) && cordon !== 'curlew';
}

/** How it leaves: its Node first, then its host is reset, or deleted by its provider. Refused where the others would not work without it. */
export function planLeaving(wanted: WantedMachine, look: ClusterLook): PlannedMachine {
  const { cluster, name, bundle } = wanted;
  const others = { ...cluster, machines: cluster.machines.filter((one) => one.name !== name) };
  // A person names it: that is the approval. What other machines need does not keep it, nor what is wrong with its host.
  const able = look.refused.filter((one) => one.host !== name);
  const rest = planFor(wanted, others, { ...look, held: [], refused: able }, { approveRemovals: Infinity });
  const host = [...look.hosts, ...look.extras].find((one) => one.host.name === name);
  const { chain, refused: refusals } = leave(look, cluster.name, name);
  const provider = providerOf(look, cluster.name, host);
  // What its provider deletes needs no reset.
  const before = chain.filter(({ phase }) => phase !== 'reset' || provider.chain.length === 0);
  const isReset = before.some(({ phase }) => phase === 'reset');
  const images = isReset ? imagesFor(host, bundle) : NO_CHAIN;
  const strange = isReset ? otherMachine(host) : [];
  const refused = [
    ...rest.refused.filter((one) => one.host !== name),
    ...refusals,
    ...strange,
    ...images.refused,
    ...provider.refused,
  ];
  // One without curlew gets it before it can be asked.
  const first = rest.steps.filter((one) => one.phase === 'images' && one.host === look.silent?.name);
  const isExplained = first.length > 0 || (bundle !== undefined && rest.refused.some((one) => one.host !== name));
  const held = [...rest.held.filter((one) => one.host === undefined), ...(isExplained ? [] : silence(look, bundle))];
  const hosts = host === undefined ? [] : [shownHost(look, host)];
  const isAble = refused.length + held.length === 0;
  const own = first.length > 0 ? first : inTurn([...images.chain, ...before, ...provider.chain]);
  const steps = isAble ? own : [];
  return { ...rest, machine: name, hosts, refused, held, steps };
}

/** An entry that was copied from that of another machine must not cost that one its data. */
function otherMachine(look: HostLook | undefined): readonly Held[] {
  if (look?.facts === undefined || look.facts.hostname === look.host.name) return [];
  const { name: host } = look.host;
  const reason = `its hostname is ${look.facts.hostname}: it may be another machine, so correct its address, or take it out of the file`;
  return [{ host, reason }];
}

/** A machine of which its provider says nothing, or that runs and that it does not have, is not forgotten: no one else would delete it. */
function providerOf({ seen }: ClusterLook, cluster: string, look: HostLook | undefined): Leaving {
  if (look?.host.provided === undefined) return NO_CHAIN;
  const { host, exists, problem } = look;
  const node = seen.machines.find((one) => one.name === host.name);
  const { cluster: owner = cluster } = node ?? {};
  const elsewhere = runsElsewhere(look, node);
  if (elsewhere !== undefined) return { chain: [], refused: [{ host: host.name, reason: elsewhere }] };
  if (exists === false) return NO_CHAIN;
  const wrong = exists === undefined ? problem?.reason : owner === cluster ? undefined : belongsTo(owner);
  if (wrong !== undefined) return { chain: [], refused: [{ host: host.name, reason: wrong }] };
  return { chain: [{ host: host.name, phase: 'delete', reason: 'its provider has it' }], refused: [] };
}

function belongsTo(cluster: string): string {
  return `it belongs to the cluster ${cluster}`;
}

/** Why nothing is known of nodes, where some control plane is one or may be one. */
function silence({ speaker, silent, hosts }: ClusterLook, bundle: BundleFacts | undefined): readonly Held[] {
  if (silent !== undefined) {
    const how = bundle === undefined ? ': add --bundle' : ', and cannot get the bundle: curlew cluster plan says why';
    return [{ host: silent.name, reason: `it has no curlew to ask for the nodes of the cluster${how}` }];
  }
  const control = hosts.filter(({ host }) => host.role === 'control-plane');
  const isNone = control.every(({ facts, exists }) => {
    return exists === false || (facts !== undefined && !facts.isControlPlane);
  });
  if (speaker !== undefined || isNone) return [];
  return [{ reason: 'no control plane could be asked for its nodes: curlew cluster plan says why' }];
}

/** curlew itself resets a host, by the bundle that is there, or that is sent. */
function imagesFor(look: HostLook | undefined, bundle: BundleFacts | undefined): Leaving {
  if (look?.facts === undefined || look.facts.bundle !== undefined) return NO_CHAIN;
  const { name: host } = look.host;
  if (bundle === undefined)
    return { chain: [], refused: [{ host, reason: 'no bundle is on it to reset it: add --bundle' }] };
  return { chain: [{ host, phase: 'images', reason: 'the reset needs the bundle' }], refused: [] };
}

/** Its Node, then its host if that is still part of the cluster. Nothing where neither is. */
function leave({ seen, speaker }: ClusterLook, cluster: string, name: string): Leaving {
  // Nothing is known of nodes while none of the control planes answers.
  if (speaker === undefined) return NO_CHAIN;
  const machine = seen.machines.find((one) => one.name === name);
  const joined = { ...seen, machines: seen.machines.filter((one) => one.joined) };
  const { chains, held } = removalTurns(joined, name);
  const chain = (chains[0] ?? []).filter(({ phase }) => phase !== 'reset');
  // A host that another cluster uses now is not ours to reset.
  const isPart = machine?.answers === true && machine.cluster === cluster;
  const reset: Action = { host: name, phase: 'reset', reason: 'it must not join again by itself' };
  return { chain: [...chain, ...(isPart ? [reset] : [])], refused: held };
}

function inTurn(actions: readonly Action[]): readonly Step[] {
  return actions.map((action, at) => ({ ...action, waits: actions.slice(Math.max(0, at - 1), at).map(titleOf) }));
}

function titleOf({ host, phase, to }: Action): string {
  return [phase, host, to].filter((part) => part !== undefined).join(' ');
}

interface Repair extends WantedMachine {
  /** Most machines that may be unhealthy: a number, or a percentage of all. */
  readonly maxUnhealthy?: string | undefined;
}

/**
 * How a machine that is not healthy becomes so: what has stopped is started, and missing files are put back; if that did not help, it
 * leaves, and joins again. One that does not answer is deleted and created again by its
 * provider. Nothing for one that is healthy, so that the same command can be
 * repeated. `done` is what this command has done.
 */
export function planRepair(wanted: Repair, look: ClusterLook, done: readonly Done[]): PlannedMachine {
  const { cluster, name, bundle } = wanted;
  const { seen, hosts } = look;
  const asWritten = planMachine(wanted, look);
  const machine = seen.machines.find((one) => one.name === name);
  const isBack = done.some(({ phase }) => phase === 'join');
  const host = hosts.find((one) => one.host.name === name);
  const inPlace = repairInPlace(wanted, look, host);
  // It needs no other machine, and a control plane that is broken may be the only one.
  if (inPlace !== undefined && done.every(({ phase }) => phase !== 'repair')) return { ...asWritten, ...inPlace };
  // Nodes that are not listed say nothing about this one.
  if (isBack || machine === undefined || !seen.complete || look.speaker === undefined) return asWritten;
  if (isHealthy(seen, machine) && inPlace === undefined) {
    const reason = `${silenceOf(machine)}, and its node is ready: look at its SSH server and the network`;
    return {
      ...asWritten,
      steps: [],
      held: machine.answers || asWritten.refused.length > 0 ? [] : [{ host: name, reason }],
    };
  }
  const { chain, refused } = leave(look, cluster.name, name);
  const isReset = chain.some(({ phase }) => phase === 'reset');
  const isDeleted = !machine.answers && host?.exists === true;
  const { toCreate = isDeleted ? 'its provider has deleted it' : undefined } = machine;
  const gone: SeenCluster = {
    ...seen,
    machines: seen.machines.map((one) => (one.name === name ? { ...withoutNode(one, isReset), toCreate } : one)),
    members: seen.members?.filter((one) => one.name !== name),
  };
  // What is wrong with a host that is deleted does not keep it.
  const others = isDeleted ? look.refused.filter((one) => one.host !== name) : look.refused;
  const after = planMachine(wanted, { ...look, seen: gone, refused: others });
  // Why it is not reached is what a person settles: nothing else is true of it before.
  const isRefused = after.refused.some((one) => one.host === name);
  const silent =
    machine.answers || host?.exists !== undefined || isRefused
      ? []
      : [{ host: name, reason: 'it does not answer: turn it on, or install it again with this name and address' }];
  const { cluster: owner = cluster.name } = machine;
  // A second machine with its name would take its place, and no one would delete the first.
  const elsewhere = host && runsElsewhere(host, machine);
  const strange = [
    ...(owner === cluster.name ? [] : [belongsTo(owner)]),
    ...(elsewhere === undefined ? [] : [elsewhere]),
  ].map((reason) => {
    return { host: name, reason };
  });
  const reasons = [
    ...after.refused,
    ...refused,
    ...silent,
    ...strange,
    ...(chain.length > 0 ? tooMany(cluster, seen, wanted.maxUnhealthy) : []),
  ];
  // What has left and cannot come back is not repaired.
  const isAble = reasons.length === 0 && after.steps.some(({ phase }) => phase === 'join' || phase === 'init');
  const held = reasons.some((one) => one.host === name) ? after.held.filter((one) => one.host !== name) : after.held;
  if (!isAble) return { ...after, steps: [], held, refused: reasons };
  const images = isReset ? imagesFor(host, bundle) : NO_CHAIN;
  const deletion: Action = { host: name, phase: 'delete', reason: 'it does not answer' };
  const before = inTurn([...images.chain, ...chain, ...(isDeleted ? [deletion] : [])]);
  const last = before.slice(-1).map(titleOf);
  const joins = after.steps.map((one, at) => (at === 0 ? { ...one, waits: [...last, ...one.waits] } : one));
  return { ...after, hosts: asWritten.hosts, steps: [...before, ...joins] };
}

/** Undefined where nothing says that the machine is broken, or no curlew is there that would repair it. */
function repairInPlace(
  { cluster, name }: WantedMachine,
  { seen, isListed }: ClusterLook,
  host: HostLook | undefined,
): Pick<PlannedMachine, 'steps' | 'held' | 'refused'> | undefined {
  const { facts } = host ?? {};
  const machine = seen.machines.find((one) => one.name === name);
  if (machine?.cluster !== cluster.name || facts?.isPart !== true || facts.bundle === undefined) return undefined;
  if (facts.hostname !== name || facts.isUnfinished || machine.leaving === true) return undefined;
  const isWell = isListed ? machine.joined && isHealthy(seen, machine) : true;
  if (isWell && facts.broken.length === 0) return undefined;
  if (isListed && !machine.joined) return undefined;
  const why = facts.broken.length === 0 ? 'it is not healthy' : facts.broken.join('; ');
  const reason = `${why}: what has stopped is started, and missing files are put back; if that does not help, it is reset and joins again`;
  return { steps: [{ host: name, phase: 'repair', reason, waits: [] }], held: [], refused: [] };
}

/** The machine as it is seen after it has left. A reset leaves nothing of the bundle. */
function withoutNode({ name, answers, silence, hostId, images = [] }: SeenMachine, isReset: boolean): SeenMachine {
  return { name, answers, silence, hostId, joined: false, images: isReset ? [] : images };
}

function isHealthy({ members }: SeenCluster, { name, joined, ready, leaving, role }: SeenMachine): boolean {
  const works = role === 'worker' || members?.some((one) => one.name === name && one.healthy === true) !== false;
  return joined && ready === true && leaving !== true && works;
}

/** Many broken machines have one cause, which a repair of each does not fix. */
function tooMany({ machines }: WrittenCluster, seen: SeenCluster, maxUnhealthy: string | undefined): readonly Held[] {
  const byName = new Map(seen.machines.map((one) => [one.name, one]));
  const ours = machines.flatMap(({ name }) => byName.get(name) ?? []).filter(({ joined }) => joined);
  const unhealthy = ours.filter((one) => !isHealthy(seen, one)).length;
  const total = machines.length;
  const limit = maxUnhealthy ?? MAX_UNHEALTHY;
  const threshold = /^\d+$/.test(limit) ? Number(limit) : limit;
  const isAllowed = mayRepair({ total, unhealthy, threshold });
  if (isAllowed || (maxUnhealthy === undefined && unhealthy <= 1)) return [];
  const reason = `${unhealthy} of ${total} machines are not healthy, and a repair begins only while at most ${limit} are: look for what they have in common, or change --max-unhealthy`;
  return [{ reason }];
}
