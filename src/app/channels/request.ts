/** What a pass is asked to do. */
import type { ClusterRequest } from '../../deliver/cluster.ts';
import type { DeliveryRequest } from '../../deliver/request.ts';
import type { ChannelsRequest } from '../ports/channel-files.ts';

export interface ChannelApplyRequest extends ChannelsRequest, ClusterRequest, DeliveryRequest {
  /** Only these add-ons; default: all of the channels. */
  readonly addons?: readonly string[] | undefined;
  readonly allowDowngrade?: boolean | undefined;
}
