/** Keeps the add-ons of a cluster at what channels say: one pass, or what it would do. */
import { holdCluster, openChannelCluster } from '../deliver/cluster.ts';
import { needsWork, Pass } from './channels/pass.ts';
import type { ChannelApplyRequest, ChannelPass } from './channels/request.ts';
import type { Context } from '../core/context.ts';
import { openChannels } from './ports/channel-files.ts';

export type { ChannelApplyRequest, ChannelPass } from './channels/request.ts';
export type { AddonResult, ChangedObject, Trouble } from '../deliver/result.ts';

/** What a pass would do, by server-side dry runs; changes nothing. */
export async function previewChannels(request: ChannelApplyRequest, context: Context): Promise<ChannelPass> {
  await using files = await openChannels(request, context);
  const cluster = await openChannelCluster(request, context);
  const first = new Pass(files, cluster, { request, context });
  return await first.run(async (pass, planned) => pass.preview(planned), { isPreview: true });
}

/**
 * One pass: installs, updates, restores and prunes, in the order in which add-ons require each other. One that fails does not stop
 * the others, and is tried again by the next pass. `BUSY` if another process is applying add-ons to this cluster. Nothing is
 * written if there is nothing to do.
 */
export async function applyChannels(request: ChannelApplyRequest, context: Context): Promise<ChannelPass> {
  await using files = await openChannels(request, context);
  const cluster = await openChannelCluster(request, context);
  const first = new Pass(files, cluster, { request, context });
  if (!(await first.planned()).some(needsWork)) return await first.run(async (pass, planned) => pass.preview(planned));
  await using held = await holdCluster(cluster, { doing: `apply channels to ${cluster.server}`, context });
  return await new Pass(files, held.cluster, { request, context }).run(async (pass, planned) => pass.apply(planned));
}
