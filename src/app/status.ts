/** What a node has installed, and what came of its last run. */
import { nodeStatus, type NodeStatus } from '../runtime/run/status.ts';
import type { Context } from './context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';

/** An install folder that is not there has nothing installed. Damaged records are `FILE_UNUSABLE`. */
export async function status(request: FolderRequest, context: Context): Promise<NodeStatus> {
  return nodeStatus(folderOf(request, context), context);
}
