/** State and health of an add-on on one cluster by the rules of Open Cluster Management. Pure. */

export interface DesiredConfig {
  readonly type: string;
  readonly name: string;
  readonly hash: string;
}

/** What the add-on of a cluster aims at, and what was applied last. */
export interface AppliedConfig {
  readonly type: string;
  readonly name: string;
  readonly desiredHash: string;
  readonly appliedHash: string;
}

export interface AddonStatus {
  readonly status: 'ToApply' | 'Progressing' | 'Failed' | 'Succeeded';
  /** Time of the transition, if it is known. */
  readonly t?: number;
}

/** The state of an add-on on one cluster; `progressing` is its condition of that name. */
export function addonStatus(
  desired: readonly DesiredConfig[],
  references: readonly AppliedConfig[],
  progressing: { readonly reason?: string; readonly t?: number } = {},
): AddonStatus {
  if (references.length !== desired.length) return { status: 'ToApply' };
  const { reason, t } = progressing;
  const at = t === undefined ? {} : { t };
  for (const { type, name, desiredHash, appliedHash } of references) {
    const wanted = desired.find((one) => one.type === type && one.name === name);
    if (wanted?.hash !== desiredHash) return { status: 'ToApply' };
    if (appliedHash === desiredHash) continue;
    return reason === 'Failed' || reason === 'Progressing' ? { status: reason, ...at } : { status: 'Progressing' };
  }
  return { status: 'Succeeded', ...(reason === 'Completed' ? at : {}) };
}

type Condition = 'True' | 'False' | 'Unknown';

export interface ProbedWork {
  readonly clusterAvailable?: Condition;
  /** True if left out. */
  readonly manifestAppliedPresent?: boolean;
  /** False: health is that the work is applied. */
  readonly prober?: boolean;
  readonly work: { readonly available?: Condition } | null;
  /** Results of the probes. */
  readonly results?: readonly unknown[];
  /** The checker's answer to them. */
  readonly check?: boolean;
}

/** Status and reason of the condition Available, by the work that delivers the add-on; or that it stays as it is. */
export function workProbe({ work, results, check = true, ...seen }: ProbedWork): string {
  if (seen.prober === false) return 'True/WorkApplied';
  if (seen.clusterAvailable === 'Unknown' || seen.manifestAppliedPresent === false) return 'unchanged';
  if (work === null) return 'Unknown/WorkNotFound';
  if (work.available !== 'True') return `${work.available ?? 'Unknown'}/WorkNotApplied`;
  if (results?.length === 0) return 'Unknown/NoProbeResult';
  return check ? 'True/ProbeAvailable' : 'False/ProbeUnavailable';
}

/** One ready pod of a Deployment is enough; a DaemonSet needs all. */
export function isWorkloadHealthy(kind: 'Deployment' | 'DaemonSet', desired: number, ready: number): boolean {
  return kind === 'Deployment' ? desired === 0 || ready >= 1 : ready === desired;
}

/** Components renew their Lease every minute. */
const LEASE_SECONDS = 5 * 60;

/** Is a component available, by the age of its Lease? Undefined if there is none. */
export function leaseStatus(ageSeconds: number | undefined): Condition {
  if (ageSeconds === undefined) return 'Unknown';
  return ageSeconds < LEASE_SECONDS ? 'True' : 'False';
}
