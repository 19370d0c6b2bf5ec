/** The part of conformance.ts about add-ons of Open Cluster Management and of Cluster API on single clusters. */
import { withoutLater } from '../fleet/upstream/placed.ts';
import { proxyConditions as conditionsOf } from '../fleet/upstream/releases.ts';
import {
  addonStatus as statusOf,
  isWorkloadHealthy,
  leaseStatus,
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

/** What the removal of the manifests of a template applies, deletes and keeps, by the state of its hooks. */
export function templateRemoval(input: {
  readonly manifests: readonly Readonly<Record<string, unknown>>[];
  readonly hook?: 'running' | 'failed' | 'complete';
}): ReturnType<typeof removalOf> {
  const template = { addonName: '', agentSpec: { workload: { manifests: input.manifests } } };
  const values = { templates: [template] } as TemplateValues;
  return removalOf(objectsOf(values, 'cluster'), input.hook ?? 'running');
}

/** Conditions of a HelmChartProxy by its releases. */
export function proxyConditions({
  releases = [],
}: {
  readonly releases?: readonly { readonly ready: boolean }[];
}): ReturnType<typeof conditionsOf> {
  return conditionsOf(releases);
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
  return probeWork(input);
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
export function lease({ ageSeconds }: { readonly ageSeconds?: number }): string {
  return leaseStatus(ageSeconds);
}
