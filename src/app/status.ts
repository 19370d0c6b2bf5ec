/** The installed add-ons of a node, the result of its last run, and what its cluster says. */
import { resolve } from 'node:path';
import { nodeStatus, type NodeStatus } from '../runtime/history/status.ts';
import type { Context } from '../core/context.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { STATUS } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import { metricsText } from '../machine/metrics.ts';
import { lastSnapshot } from '../machine/run/snapshots.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { clusterHealth, type ClusterHealth } from '../machine/run/node-health.ts';

export interface Status extends NodeStatus {
  /** Absent for a trial, and on a machine that is no node of kubeadm's. */
  readonly cluster?: ClusterHealth | undefined;
}

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export const status = useCase(STATUS, async (request, context: Context): Promise<Status> => {
  const node = await nodeStatus(await installedFolder(request, context), context);
  const cluster = request.root === undefined ? await clusterHealth(context) : undefined;
  if (request.prometheus !== undefined) {
    const snapshot = await lastSnapshot(node.directory);
    const text = metricsText(
      {
        certificates: cluster?.certificates ?? [],
        renewal: cluster?.renewal,
        snapshot,
        saving: cluster?.snapshot,
        lastRun: node.lastRun,
      },
      new Date(),
    );
    await writeText(resolve(context.cwd, request.prometheus), text, { force: true, mode: 0o644 });
  }
  return { ...node, ...(cluster && { cluster }) };
});
