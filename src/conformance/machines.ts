/** Test vectors of clusters and their machines; conformance.ts has the rest, and exports these. */
import { kubernetesSteps } from '../cluster/channel/plan.ts';
import { CurlewError } from '../core/errors.ts';
import { clusterDiff as differencesOf, type ClusterDifference } from '../machine/difference.ts';
import { drainPlan as planDrain, type DrainedPod, type DrainPlan } from '../machine/drain.ts';
import { quorumAfter, type EtcdMember, type Quorum } from '../machine/etcd.ts';
import {
  kepUpdate as updateOf,
  upgradeOrder as turnsOf,
  type KepMachine,
  type KepPhase,
  type Role,
} from '../machine/order.ts';
import {
  inDeletionOrder,
  mayRepair,
  pickControlPlane,
  type Deletable,
  type DeletionOrder,
  type Pickable,
} from '../machine/pick.ts';
import {
  mayMove,
  newestOfMinors,
  skewsOf,
  workerSteps,
  type MachineRules,
  type Route,
  type Skew,
} from '../machine/versions.ts';

/** A value, or `error` for what cannot be read. */
export function orError<Value>(read: () => Value): Value | 'error' {
  try {
    return read();
  } catch (error) {
    if (error instanceof CurlewError) return 'error';
    throw error;
  }
}

/** What a machine with these roles of KEP-0003 is. */
export function kepRoles({ roles }: { readonly roles: readonly string[] }): string {
  const [isMaster, isNode] = [roles.includes('Master'), roles.includes('Node')];
  if (!isMaster) return isNode ? 'worker' : 'invalid';
  return isNode ? 'schedulable-control-plane' : 'control-plane';
}

/** What is done to a machine that differs from what is desired, in order. */
export function kepUpdate(input: {
  readonly role: 'master' | 'worker';
  readonly current: KepMachine;
  readonly desired: KepMachine;
}): readonly KepPhase[] {
  return updateOf(input.role, input.current, input.desired);
}

/** Machines that are deleted and created again: those whose Node is not ready, but no masters. */
export function kepRepair({
  machines,
}: {
  readonly machines: readonly { readonly name: string; readonly role: string; readonly ready: boolean }[];
}): readonly string[] {
  return machines.flatMap(({ name, role, ready }) => (ready || role === 'Master' ? [] : [name]));
}

/** Names of machines that are upgraded together, turn by turn. */
export function upgradeOrder(input: {
  readonly version: string;
  readonly machines: readonly { readonly name: string; readonly role: Role; readonly version: string }[];
}): readonly (readonly string[])[] {
  return turnsOf(input.machines, input.version).map((turn) => turn.map(({ name }) => name));
}

/** The places where two clusters differ; `ignore` replaces the paths that identify a cluster. */
export function clusterDiff(input: {
  readonly a: unknown;
  readonly b: unknown;
  readonly ignore?: readonly string[];
}): readonly ClusterDifference[] {
  return differencesOf(input.a, input.b, input.ignore);
}

/** `allowed` or `denied`. */
export function kcpVersionChange(
  { from, to }: { readonly from: string; readonly to: string },
  compat: MachineRules = 'capi',
): string {
  return mayMove(from, to, compat) ? 'allowed' : 'denied';
}

/** The versions that workers pass, or `error`. */
export function upgradePlan(input: Route, compat: MachineRules = 'capi'): readonly string[] | 'error' {
  return orError(() => workerSteps(input, compat));
}

/** The versions that a control plane passes, from a list of available ones; natively `error` where a minor is missing. */
export function planFromVersions(
  input: { readonly versions: readonly string[]; readonly desired: string; readonly controlPlane: string },
  compat: MachineRules = 'capi',
): readonly string[] | 'error' {
  const { versions, desired, controlPlane } = input;
  return orError(() =>
    compat === 'native'
      ? kubernetesSteps(controlPlane, desired, versions).slice(1)
      : newestOfMinors(versions, { desired, controlPlane }),
  );
}

/** Why a worker does not fit its control plane. */
export function workerSkew(input: {
  readonly controlPlane: string;
  readonly worker: string;
  readonly kubeadm: boolean;
}): readonly Skew[] {
  return skewsOf(input.controlPlane, input.worker, input);
}

/** Members and quorum of etcd after a change, and whether that is safe. */
export function etcdSafe(input: {
  readonly members: readonly EtcdMember[];
  readonly remove?: string;
  readonly add?: boolean;
}): Quorum {
  return quorumAfter(input.members, input);
}

/** The control plane that is next, or null. */
export function kcpPick(input: {
  readonly machines: readonly Pickable[];
  readonly zones?: readonly string[];
}): string | null {
  return pickControlPlane(input.machines, input.zones)?.name ?? null;
}

/** The first so many machines that go. */
export function deletionOrder(input: {
  readonly order: DeletionOrder;
  readonly count: number;
  readonly machines: readonly Deletable[];
}): readonly string[] {
  return inDeletionOrder(input.machines, input.order)
    .slice(0, input.count)
    .map(({ name }) => name);
}

/** May unhealthy machines be repaired? */
export function mhcAllowed(input: {
  readonly total: number;
  readonly unhealthy: number;
  readonly threshold?: number | string;
  readonly inRange?: string;
}): boolean | 'error' {
  return orError(() => mayRepair(input));
}

/** What a drain does with the pods of a node. */
export function drainPlan({ pods }: { readonly pods: readonly DrainedPod[] }): DrainPlan {
  return planDrain(pods);
}
