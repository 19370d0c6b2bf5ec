/** Decisions about a release of helm. Pure. */

/** A release as it is now. */
export interface HelmRelease {
  /** Status from helm, such as `deployed` or `pending-upgrade`. */
  readonly status: string;
  /** Hash of what made it; undefined if that is not known, or is no longer what is there. */
  readonly hash?: string | undefined;
}

/** Statuses of a release that an operation has left, or is in. */
const UNDER_WAY = /^(?:pending-|uninstalling)/;

export function isUnderWay({ status }: Pick<HelmRelease, 'status'>): boolean {
  return UNDER_WAY.test(status);
}

/**
 * The work of helm by which a release becomes what has the hash `wanted`. One that an operation has left blocks all others: it is recovered
 * first, which the Helm add-on provider of Cluster API does by marking it as failed.
 */
export function releaseAction(
  release: HelmRelease | undefined,
  wanted: string,
): 'install' | 'mark-failed-then-upgrade' | 'upgrade' | 'none' {
  if (release === undefined) return 'install';
  if (isUnderWay(release)) return 'mark-failed-then-upgrade';
  return release.status === 'deployed' && release.hash === wanted ? 'none' : 'upgrade';
}

/** The consequence of a removed record for what it is about: only what is still there, on a cluster that is, can be uninstalled. */
export function removalAction(target: {
  /** The release stays installed. */
  readonly once: boolean;
  readonly cluster: boolean;
  readonly release: boolean;
}): 'uninstall' | 'drop-record' {
  return !target.once && target.cluster && target.release ? 'uninstall' : 'drop-record';
}
