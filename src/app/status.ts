/** The installed add-ons of a node, and the result of its last run. */
import { nodeStatus, type NodeStatus } from '../runtime/history/status.ts';
import type { Context } from '../core/context.ts';
import { folderOf } from '../node/install-folder.ts';
import { STATUS } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export const status = useCase(STATUS, async (request, context: Context): Promise<NodeStatus> => {
  return nodeStatus(folderOf(request, context), context);
});
