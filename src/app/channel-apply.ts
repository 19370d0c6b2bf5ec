/** Keeps the add-ons of a cluster at what channels say: one pass, or what it would do. */
import { holdCluster, openChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { openPass } from '../steps/channel/pass.ts';
import type { ChannelPass } from '../steps/channel/result.ts';
import { openChannels } from '../steps/open/channel-files.ts';
import { PASS } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

export type { AddonResult, ChannelPass } from '../steps/channel/result.ts';
export type { ChangedObject, Trouble } from '../cluster/deliver/outcome.ts';

/** The changes that a pass would make, by server-side dry runs; changes nothing. */
export const previewChannels = useCase(PASS, async (request, context): Promise<ChannelPass> => {
  await using files = await openChannels(request, context);
  const cluster = await openChannelCluster(request, context);
  const pass = await openPass(files, cluster, { request, context });
  return await pass.preview({ isPreview: true });
});

/**
 * One pass: installs, updates, restores and prunes, in the order in which add-ons require each other. One that fails does not stop
 * the others, and is tried again by the next pass. `BUSY` if another process is applying add-ons to this cluster. Nothing is
 * written if there is nothing to do.
 */
export const applyChannels = useCase(PASS, async (request, context): Promise<ChannelPass> => {
  await using files = await openChannels(request, context);
  const cluster = await openChannelCluster(request, context);
  const first = await openPass(files, cluster, { request, context });
  if (!first.hasWork) return await first.preview({ isPreview: false });
  await using held = await holdCluster(cluster, { doing: `apply channels to ${cluster.server}`, context });
  const pass = await openPass(files, held.cluster, { request, context });
  return await pass.apply();
});
