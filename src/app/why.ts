/** Why an add-on came out as it did the last time. */
import { whyAddon, type AddonHistory } from '../runtime/run/why.ts';
import type { Context } from './context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';
import { clusterFinder } from './node/cluster.ts';

export interface WhyRequest extends FolderRequest {
  /** Name of the add-on. */
  readonly addon: string;
}

/** `NOT_FOUND` when neither the records, of this node or of its cluster, nor a run that is still known have the add-on. */
export async function why(request: WhyRequest, context: Context): Promise<AddonHistory> {
  const find = clusterFinder(request, context);
  return whyAddon(folderOf(request, context), request.addon, { find, signal: context.signal });
}
