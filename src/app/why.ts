/** Explains the last result of an add-on. */
import { whyAddon, type AddonHistory } from '../runtime/history/why.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { clusterFinder } from '../steps/node/cluster.ts';
import { WHY } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

/** `NOT_FOUND` if neither the records of this node or of its cluster nor a kept run have the add-on. */
export const why = useCase(WHY, async (request, context): Promise<AddonHistory> => {
  // A trial remembers which cluster it used, but not how to reach it.
  const find = request.root === undefined ? clusterFinder(request, context) : undefined;
  return whyAddon(await installedFolder(request, context), request.addon, { find, signal: context.signal });
});
