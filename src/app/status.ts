/** The installed add-ons of a node, the result of its last run, and what its cluster says. */
import { nodeStatus, type NodeStatus } from '../runtime/history/status.ts';
import type { Context } from '../core/context.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { STATUS } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import { clusterHealth, type ClusterHealth } from '../machine/run/node-health.ts';

export interface Status extends NodeStatus {
  /** Absent for a trial, and on a machine that is no node of kubeadm's. */
  readonly cluster?: ClusterHealth | undefined;
}

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export const status = useCase(STATUS, async (request, context: Context): Promise<Status> => {
  const node = await nodeStatus(await installedFolder(request, context), context);
  const cluster = request.root === undefined ? await clusterHealth(context) : undefined;
  return { ...node, ...(cluster && { cluster }) };
});
