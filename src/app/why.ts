/** Explains the last result of an add-on. */
import { whyAddon, type AddonHistory } from '../runtime/history/why.ts';
import type { Context } from '../core/context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';
import { clusterFinder } from './node/cluster.ts';

export interface WhyRequest extends FolderRequest {
  /** Name of the add-on. */
  readonly addon: string;
}

/** `NOT_FOUND` if neither the records of this node or of its cluster nor a kept run have the add-on. */
export async function why(request: WhyRequest, context: Context): Promise<AddonHistory> {
  const find = clusterFinder(request, context);
  return whyAddon(folderOf(request, context), request.addon, { find, signal: context.signal });
}
