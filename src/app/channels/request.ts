/** What a pass is asked to do, and what it reports. */
import type { LeftAddon, UnfitAddon } from '../../channel/pass.ts';
import type { ClusterRequest } from '../../deliver/cluster.ts';
import type { DeliveryRequest } from '../../deliver/request.ts';
import type { AddonResult, Trouble } from '../../deliver/result.ts';
import type { ChannelsRequest } from '../ports/channel-files.ts';

export interface ChannelApplyRequest extends ChannelsRequest, ClusterRequest, DeliveryRequest {
  /** Only these add-ons; default: all of the channels. */
  readonly addons?: readonly string[] | undefined;
  readonly allowDowngrade?: boolean | undefined;
}

export interface ChannelPass {
  readonly cluster: { readonly server: string; readonly kubernetes: string };
  /** Nothing was applied: this is what a pass would do. */
  readonly isPreview: boolean;
  readonly addons: readonly AddonResult[];
  /** Installed add-ons for which their channel has no entry now. */
  readonly left: readonly (Omit<LeftAddon, 'installed'> & { readonly current: string })[];
  /** Add-ons of the channels that are not for this version of Kubernetes. */
  readonly unfit: readonly UnfitAddon[];
  readonly warnings: readonly string[];
  /** Of channels that could not be read. */
  readonly errors: readonly Trouble[];
}
