/** The order in which machines change, and what is done on each: the promises of KEP-0003. Pure. */
import { canonicalJson } from '../core/digest.ts';

export type Role = 'control-plane' | 'worker';

/** Versions of one machine. A worker has no control plane. */
interface Versions {
  readonly kubelet?: string;
  readonly controlPlane?: string;
}

/** What is done to a machine. */
export type KepPhase =
  | 'kubeadm-upgrade-apply'
  | 'drain'
  | 'install-kubelet'
  | 'uncordon'
  | 'delete'
  | 'create'
  | 'noop';

/** Control planes one after the other, then all workers together; those that have the version already need no turn. */
export function upgradeOrder<M extends { readonly role: Role; readonly version: string }>(
  machines: readonly M[],
  version: string,
): readonly (readonly M[])[] {
  const outdated = machines.filter((one) => one.version !== version);
  const workers = outdated.filter(({ role }) => role === 'worker');
  const turns = outdated.filter(({ role }) => role !== 'worker').map((one) => [one]);
  return workers.length === 0 ? turns : [...turns, workers];
}

/** A machine as KEP-0003 has it; other fields do not cause an update. */
export interface KepMachine {
  readonly name?: string;
  readonly metadata?: unknown;
  readonly labels?: unknown;
  readonly providerConfig?: unknown;
  readonly roles?: unknown;
  readonly versions?: Versions;
}

const KEP_FIELDS = ['name', 'metadata', 'labels', 'providerConfig', 'roles', 'versions'] as const;

/** A control plane is changed in place, a worker replaced. */
export function kepUpdate(role: 'master' | 'worker', current: KepMachine, desired: KepMachine): readonly KepPhase[] {
  const differs = (a: unknown, b: unknown): boolean => canonicalJson(a ?? null) !== canonicalJson(b ?? null);
  if (!KEP_FIELDS.some((field) => differs(current[field], desired[field]))) return ['noop'];
  if (role === 'worker') return ['delete', 'create'];
  const [old, next] = [current.versions ?? {}, desired.versions ?? {}];
  const phases: KepPhase[] = [
    ...(old.controlPlane === next.controlPlane ? [] : (['kubeadm-upgrade-apply'] as const)),
    ...(old.kubelet === next.kubelet ? [] : (['drain', 'install-kubelet', 'uncordon'] as const)),
  ];
  return phases.length === 0 ? ['noop'] : phases;
}
