/** Documents of programs that are read, of kinds that are not: which they are, and what does the same. Pure. */
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

export class LeftAlone {
  /** By program and kind. */
  readonly #all = new Map<string, { readonly program: keyof typeof OTHERS; readonly kind: string; all: Findings[] }>();

  add(program: keyof typeof OTHERS, kind: string, findings: Findings): void {
    const key = `${kind} of ${program}`;
    const known = this.#all.get(key) ?? { program, kind, all: [] };
    known.all.push(findings);
    this.#all.set(key, known);
  }

  /** Warns once for each kind, at its first document. */
  report(): void {
    for (const [title, { program, kind, all }] of this.#all) {
      const more = all.length > 1 ? `, like ${all.length - 1} more of this kind` : '';
      const hint = WAYS[kind] ?? OTHERS[program];
      all[0]?.add('warning', 'kind', ['kind'], `this ${title} is left alone${more}`, hint);
    }
  }
}
