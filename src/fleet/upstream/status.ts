/** State and health of an add-on on one cluster by the rules of Open Cluster Management. Pure. */
import { KUBE_SIGNER, type AddonCertificate } from './registration.ts';

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

/** An entry of `registrations`, in the form of `v1alpha1`, or of a later version. */
export function registrationEntry({ signer: signerName, subject }: AddonCertificate, isLater: boolean): object {
  const { commonName: user, organizations: groups, units } = subject;
  const field = isLater ? 'organizationUnits' : 'organizationUnit';
  const named = { user, groups, ...(units && { [field]: units }) };
  if (!isLater) return { signerName, subject: named };
  return signerName === KUBE_SIGNER
    ? { type: 'kubeClient', kubeClient: { subject: named } }
    : { type: 'customSigner', customSigner: { signerName, subject: named } };
}

/** The condition RegistrationApplied by the rights of an add-on; or that it stays as it is, since nothing is decided. */
export function registrationApplied(
  isBound: boolean,
  refusal: string | undefined,
): (Probed & { readonly message: string }) | 'unchanged' {
  if (refusal !== undefined) return { status: 'False', reason: 'SetPermissionFailed', message: refusal };
  if (!isBound) return 'unchanged';
  return {
    status: 'True',
    reason: 'SetPermissionApplied',
    message: 'it has all that its template asks for at the hub',
  };
}

type Condition = 'True' | 'False' | 'Unknown';

export interface ProbedWork {
  readonly clusterAvailable?: Condition;
  /** True if left out. */
  readonly manifestAppliedPresent?: boolean;
  /** False: health is that the work is applied. */
  readonly prober?: boolean;
  readonly work: { readonly available?: Condition | undefined } | null;
  /** Results of the probes. */
  readonly results?: readonly unknown[];
  /** The checker's answer to them. */
  readonly check?: boolean;
}

interface Probed {
  readonly status: Condition;
  readonly reason: string;
}

/** The condition Available by the work that delivers the add-on; or that it stays as it is. */
export function workProbe({ work, results, check = true, ...seen }: ProbedWork): Probed | 'unchanged' {
  if (seen.prober === false) return { status: 'True', reason: 'WorkApplied' };
  if (seen.clusterAvailable === 'Unknown' || seen.manifestAppliedPresent === false) return 'unchanged';
  if (work === null) return { status: 'Unknown', reason: 'WorkNotFound' };
  if (work.available !== 'True') return { status: work.available ?? 'Unknown', reason: 'WorkNotApplied' };
  if (results?.length === 0) return { status: 'Unknown', reason: 'NoProbeResult' };
  return check ? { status: 'True', reason: 'ProbeAvailable' } : { status: 'False', reason: 'ProbeUnavailable' };
}
