/** Lets this machine be a node again as kubeadm has made it: what has stopped is started, and missing files are put back. */
import { hostname } from 'node:os';
import { useCase } from '../core/request.ts';
import { quorumProblem } from '../machine/run/quorum.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { kubernetesTask } from '../steps/node/kubernetes-task.ts';
import { NODE_REPAIR } from '../requests/node.ts';

export interface NodeRepaired {
  /** It is ready. */
  readonly node: string;
}

/** Needs no API server to begin. `HOOK_FAILED` if something does not start, and `CLUSTER_FAILED` if etcd has lost its quorum. */
export const repairNode = useCase(NODE_REPAIR, async (request, context): Promise<NodeRepaired> => {
  // Nothing on this machine changes that.
  const lost = await quorumProblem(context);
  if (lost !== undefined) throw lost;
  await kubernetesTask(folderOf(request, context), ['kubernetes_repair'], context);
  return { node: hostname().toLowerCase() };
});
