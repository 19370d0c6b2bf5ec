/** Documents of programs that are read, which do nothing here: which they are, and what does the same. Pure. */
import type { Findings } from '../../cluster/channel/findings.ts';

const AS_MANIFEST =
  'write its manifests into a file, and name that as spec.source.manifest of a FleetAddon that selects';

/** By kind. */
const WAYS: Readonly<Record<string, string>> = {
  ManifestWork: `${AS_MANIFEST} its cluster`,
  ManifestWorkReplicaSet: `${AS_MANIFEST} the clusters of its placements, with rollout in the place of its rolloutStrategy`,
  Policy: `${AS_MANIFEST} the clusters of its placement; drift: Revert enforces them`,
  ClusterResourceSet: `${AS_MANIFEST} the same clusters`,
  HelmReleaseProxy: 'remove it: the HelmChartProxy that it was made from is enough',
  AddOnPlacementScore: 'add the PlacementDecisions of the hub: curlew has no scores',
  ClusterManager: 'remove it: curlew needs no part of Open Cluster Management',
  Klusterlet: 'remove it: curlew needs no part of Open Cluster Management',
};

const OTHERS = {
  'Open Cluster Management': 'describe the add-on as a FleetAddon, and the cluster as a Cluster',
  'Cluster API': 'leave machines to Cluster API, or describe them in spec.machines of a Cluster',
} as const;

/** Why a document of a kind that is read does nothing, and what to do. */
const REASONS = {
  template: ['it is a template of a chart', 'render the chart with helm template, and add what that prints'],
  unused: ['no add-on uses it', 'add the ClusterManagementAddOn that uses it, or remove it'],
} as const;

export class LeftAlone {
  /** By what is said of them. */
  readonly #all = new Map<string, { readonly hint: string; readonly all: Findings[] }>();

  add(program: keyof typeof OTHERS, kind: string, findings: Findings, why?: keyof typeof REASONS): void {
    const [reason, hint] = why === undefined ? ['', WAYS[kind] ?? OTHERS[program]] : REASONS[why];
    const title = `this ${kind} of ${program} is left alone${reason && `: ${reason}`}`;
    const known = this.#all.get(title) ?? { hint, all: [] };
    known.all.push(findings);
    this.#all.set(title, known);
  }

  /** Warns once for each kind and reason, at the first document. */
  report(): void {
    for (const [title, { hint, all }] of this.#all) {
      const more = all.length > 1 ? `, like ${all.length - 1} more of this kind` : '';
      all[0]?.add('warning', 'kind', ['kind'], `${title}${more}`, hint);
    }
  }
}
