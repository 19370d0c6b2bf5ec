/** Releases of charts on selected clusters, by the rules of the Helm add-on provider of Cluster API. Pure. */

/** A chart repository: `https://…`, or `oci://…` in lower case, with a host. */
export function isChartUrl(url: string): boolean {
  return /^(?:https|HTTPS|oci):\/\/(?:[^/?#]*@)?[^/?#@]+/.test(url);
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
  /** Status from helm. */
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
export function releaseRemoval(target: {
  readonly once: boolean;
  readonly cluster: boolean;
  readonly release: boolean;
}): 'uninstall' | 'drop-record' {
  return !target.once && target.cluster && target.release ? 'uninstall' : 'drop-record';
}

type Condition = 'True' | 'False';

/** Conditions of a HelmChartProxy by those of its releases; both are true if there are none. */
export function proxyConditions(releases: readonly { readonly ready: boolean }[]): {
  readonly HelmReleaseProxiesReady: Condition;
  readonly Ready: Condition;
} {
  const ready = releases.every((one) => one.ready) ? 'True' : 'False';
  return { HelmReleaseProxiesReady: ready, Ready: ready };
}
