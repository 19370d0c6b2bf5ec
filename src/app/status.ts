/** The installed add-ons of a node, and the result of its last run. */
import { nodeStatus, type NodeStatus } from '../runtime/history/status.ts';
import type { Context } from '../core/context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export async function status(request: FolderRequest, context: Context): Promise<NodeStatus> {
  return nodeStatus(folderOf(request, context), context);
}
