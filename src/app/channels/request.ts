/** What a pass is asked to do. */
import type { ChannelsRequest } from '../ports/channel-files.ts';
import type { ClusterRequest } from './cluster.ts';
import type { HelmRequest } from './helm.ts';

export interface ChannelApplyRequest extends ChannelsRequest, ClusterRequest, HelmRequest {
  /** Only these add-ons; default: all of the channels. */
  readonly addons?: readonly string[] | undefined;
  readonly allowDowngrade?: boolean | undefined;
  /** Add-ons of another owner become those of their channel: all, or those of these names. */
  readonly takeOver?: boolean | readonly string[] | undefined;
  /** Takes fields from other managers. */
  readonly forceConflicts?: boolean | undefined;
  readonly pruneNamespaces?: boolean | undefined;
  readonly pruneCrds?: boolean | undefined;
  /** Limit of the wait for the health of an add-on, in milliseconds; default: 5 minutes. */
  readonly timeout?: number | undefined;
}

const TIMEOUT_MS = 300_000;

/** Limit of the wait for the health of an add-on, in milliseconds. */
export function timeoutOf({ timeout }: { readonly timeout?: number | undefined }): number {
  return timeout ?? TIMEOUT_MS;
}
