/** Test vectors of clusters and their machines; conformance.ts has the rest, and exports these. */
import { CurlewError } from '../core/errors.ts';
import { clusterDiff as differencesOf, type ClusterDifference } from '../machine/difference.ts';
import { drainPlan as planDrain, type DrainedPod, type DrainPlan } from '../machine/drain.ts';
import { quorumAfter, type EtcdMember, type Quorum } from '../machine/etcd.ts';
import type { Role } from '../machine/cluster.ts';
import { upgradeOrder as turnsOf } from '../machine/node-upgrade.ts';
import {
  inDeletionOrder,
  mayRepair,
  pickControlPlane,
  type Deletable,
  type DeletionOrder,
  type Pickable,
} from '../machine/pick.ts';
import { mayMove, skewsOf, workerSteps, type VersionRoute, type Skew } from '../machine/versions.ts';

/** A value, or `error` for what cannot be read. */
export function orError<Value>(read: () => Value): Value | 'error' {
  try {
    return read();
  } catch (error) {
    if (error instanceof CurlewError) return 'error';
    throw error;
  }
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
export function kcpVersionChange({ from, to }: { readonly from: string; readonly to: string }): string {
  return mayMove(from, to) ? 'allowed' : 'denied';
}

/** The versions that workers pass, or `error`. */
export function upgradePlan(input: VersionRoute): readonly string[] | 'error' {
  return orError(() => workerSteps(input));
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

/** The condition that makes a machine unhealthy, if it is false. */
interface VectorHealth {
  readonly healthy?: boolean;
  /** It has a Node. */
  readonly hasNode?: boolean;
  /** Its Node is healthy. */
  readonly nodeHealthy?: boolean;
  /** The settings of its MachineHealthCheck. */
  readonly healthCheck?: boolean;
}

function withHealth<M extends VectorHealth>(machine: M): M & { readonly healthy: boolean } {
  const { healthy, hasNode, nodeHealthy, healthCheck } = machine;
  return { ...machine, healthy: ![healthy, hasNode, nodeHealthy, healthCheck].includes(false) };
}

/** The control plane that is next, or null. */
export function kcpPick(input: {
  readonly machines: readonly (Pickable & VectorHealth)[];
  readonly zones?: readonly string[];
}): string | null {
  return pickControlPlane(input.machines.map(withHealth), input.zones)?.name ?? null;
}

/** The first so many machines that go. */
export function deletionOrder(input: {
  readonly order: DeletionOrder;
  readonly count: number;
  readonly machines: readonly (Deletable & VectorHealth)[];
}): readonly string[] {
  return inDeletionOrder(input.machines.map(withHealth), input.order)
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

/** The treatment of the pods of a node in a drain. */
export function drainPlan({ pods }: { readonly pods: readonly DrainedPod[] }): DrainPlan {
  return planDrain(pods);
}
