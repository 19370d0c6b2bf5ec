/** What happens to an add-on on one cluster, and to its Helm release, by the rules of charts on selected clusters. Pure. */

/** A chart repository: `https://…`, or `oci://…` in lower case, with a host. */
export function isChartUrl(url: string): boolean {
  return /^(?:https|HTTPS|oci):\/\/(?:[^/?#]*@)?[^/?#@]+/.test(url);
}

export type Action = 'create' | 'update' | 'reinstall' | 'delete' | 'none';

/** What is recorded of an add-on on one cluster, compared with what is wanted. */
export interface Recorded {
  /** It was once installed successfully. */
  readonly installed: boolean;
  /** What cannot be changed in place, such as the name of the release, differs. */
  readonly isOther: boolean;
  /** Version, source or values differ. */
  readonly changed: boolean;
}

/** `once`: what was installed is never changed, and never removed because a cluster is no longer selected. */
export function actionFor({
  selected,
  once,
  recorded,
}: {
  readonly selected: boolean;
  readonly once: boolean;
  readonly recorded: Recorded | undefined;
}): Action {
  if (!selected) return recorded === undefined || once ? 'none' : 'delete';
  if (recorded === undefined) return 'create';
  if (once && recorded.installed) return 'none';
  if (recorded.isOther && !once) return 'reinstall';
  return recorded.changed ? 'update' : 'none';
}

/** The part of a chart's release that cannot be changed in place. */
export interface ReleaseIdentity {
  readonly chartName: string;
  readonly repoURL: string;
  /** `default` by default. */
  readonly namespace?: string;
  readonly releaseName?: string;
}

/** Is the release that is wanted another one than the recorded one, whose name may be generated? */
export function isOtherRelease(wanted: ReleaseIdentity, recorded: ReleaseIdentity, isNameGenerated: boolean): boolean {
  const { chartName, repoURL, namespace = 'default', releaseName } = wanted;
  if (chartName !== recorded.chartName || repoURL !== recorded.repoURL) return true;
  if (namespace !== (recorded.namespace ?? 'default')) return true;
  return isNameGenerated ? releaseName !== undefined : releaseName !== recorded.releaseName;
}

export interface HelmRelease {
  readonly version: string;
  /** As helm names it. */
  readonly status?: string;
  readonly values?: unknown;
}

/** What helm must do with a release; `isEqual` compares values as parsed YAML. */
export function releaseAction(
  release: HelmRelease | undefined,
  desired: HelmRelease,
  isEqual: (a: unknown, b: unknown) => boolean,
): 'install' | 'mark-failed-then-upgrade' | 'upgrade' | 'none' {
  if (release === undefined) return 'install';
  if (release.status?.startsWith('pending') === true) return 'mark-failed-then-upgrade';
  const isSame = release.version === desired.version && isEqual(release.values, desired.values);
  return isSame && release.status !== 'failed' ? 'none' : 'upgrade';
}

/** What the removal of a release's record does with the release. */
export function releaseRemoval(found: {
  readonly once: boolean;
  readonly cluster: boolean;
  readonly release: boolean;
}): 'uninstall' | 'drop-record' {
  return !found.once && found.cluster && found.release ? 'uninstall' : 'drop-record';
}

/** Which clusters get an add-on and which lose it: those of all placements, or none if people install it. */
export function installDiff(
  placements: readonly (readonly string[])[] | undefined,
  existing: readonly string[],
): { readonly create: readonly string[]; readonly delete: readonly string[] } {
  if (placements === undefined) return { create: [], delete: [] };
  const [wanted, present] = [new Set(placements.flat()), new Set(existing)];
  return {
    create: [...wanted].filter((name) => !present.has(name)),
    delete: [...present].filter((name) => !wanted.has(name)),
  };
}
