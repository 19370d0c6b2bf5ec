/** The installed add-ons of a node, the result of its last run, and what its cluster says. */
import { resolve } from 'node:path';
import { nodeStatus, type NodeStatus } from '../runtime/history/status.ts';
import type { Context } from '../core/context.ts';
import { installedFolder } from '../steps/node/install-folder.ts';
import { STATUS } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import { madeIn } from '../cluster/kube/kubeadm-made.ts';
import type { ClusterHealth } from '../machine/run/node-health.ts';

export interface Status extends NodeStatus {
  /** Absent for a trial, and on a machine that is no node of kubeadm's. */
  readonly cluster?: ClusterHealth | undefined;
}

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export const status = useCase(STATUS, async (request, context): Promise<Status> => {
  const node = await nodeStatus(await installedFolder(request, context), context);
  const cluster = request.root === undefined ? await healthOf(context) : undefined;
  if (request.prometheus !== undefined) {
    const { metricsText } = await import('../machine/metrics.ts');
    const { lastSnapshot } = await import('../machine/run/snapshots.ts');
    const { writeText } = await import('../platform/files/write-whole.ts');
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

/** The code that asks a cluster is most of this command's: it is read only on a node of kubeadm's. */
async function healthOf(context: Context): Promise<ClusterHealth | undefined> {
  if ((await madeIn('/etc/kubernetes')) === 'none') return undefined;
  const { clusterHealth } = await import('../machine/run/node-health.ts');
  return clusterHealth(context);
}
