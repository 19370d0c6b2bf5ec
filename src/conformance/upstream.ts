/** The part of conformance.ts about add-ons of Open Cluster Management and of Cluster API on single clusters. */
import { withoutLater } from '../fleet/upstream/placed.ts';
import { fieldsOf } from '../core/json.ts';
import { isWorkloadHealthy } from '../cluster/channel/health.ts';
import { leaseStatus } from '../fleet/hub/lease.ts';
import {
  addonStatus as statusOf,
  workProbe as probeWork,
  type AddonStatus,
  type AppliedConfig,
  type DesiredConfig,
  type ProbedWork,
} from '../fleet/upstream/status.ts';
import { objectsOf, removalOf, type TemplateValues } from '../fleet/upstream/template-objects.ts';

/** The clusters of each placement whose configuration they get. */
export function lastPlacement(input: {
  readonly placements: readonly (readonly string[])[];
}): readonly (readonly string[])[] {
  return withoutLater(input.placements);
}

/** The objects that the removal of a template's manifests applies, deletes and keeps, by the state of its hooks; as `Kind/name`. */
export function templateRemoval(input: {
  readonly manifests: readonly Readonly<Record<string, unknown>>[];
  readonly hook?: 'running' | 'failed' | 'complete';
}): { readonly applied: readonly string[]; readonly deleted: readonly string[]; readonly kept: readonly string[] } {
  const template = { addonName: '', agentSpec: { workload: { manifests: input.manifests } } };
  const values = { templates: [template] } as TemplateValues;
  const { applied, deleted, kept } = removalOf(objectsOf(values, 'cluster', 'addon'), input.hook ?? 'running');
  const titles = (objects: typeof kept): readonly string[] =>
    objects.map(({ kind, metadata }) => `${String(kind)}/${String(fieldsOf(metadata)['name'])}`);
  return { applied: titles(applied), deleted: titles(deleted), kept: titles(kept) };
}

/** The state of an add-on on one cluster. */
export function addonStatus(input: {
  readonly desired: readonly DesiredConfig[];
  readonly refs: readonly AppliedConfig[];
  readonly progressing?: { readonly reason?: string; readonly t?: number };
}): AddonStatus {
  return statusOf(input.desired, input.refs, input.progressing);
}

/** Status and reason of Available by the work, or `unchanged`. */
export function workProbe(input: ProbedWork): string {
  const probed = probeWork(input);
  return probed === 'unchanged' ? probed : `${probed.status}/${probed.reason}`;
}

/** Is a workload healthy? */
export function workload(input: {
  readonly kind: 'Deployment' | 'DaemonSet';
  readonly desired: number;
  readonly ready: number;
}): boolean {
  return isWorkloadHealthy(input.kind, input.desired, input.ready);
}

/** Status of Available by the age of a Lease; without age there is none. */
export function lease({ ageSeconds }: { readonly ageSeconds?: number | null }): string {
  return leaseStatus(ageSeconds ?? undefined);
}
