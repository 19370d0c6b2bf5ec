/** Writes the file of a cluster that runs already. */
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { adoptedCluster, type AdoptedCluster } from '../machine/run/adopt.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { CLUSTER_ADOPT } from '../requests/cluster.ts';

/**
 * Reads from the API server alone, and changes nothing of the cluster. `CLUSTER_FAILED` for one that kubeadm has not made, `FILE_EXISTS`
 * if the file exists, `USAGE` for a kubeconfig that is not in the folder of the file.
 */
export const adoptCluster = useCase(CLUSTER_ADOPT, async (request, context): Promise<AdoptedCluster> => {
  const { kubeconfig, name, out } = request;
  const { cwd } = context;
  const folder = out === undefined ? cwd : dirname(resolve(cwd, out));
  const beside = relative(folder, resolve(cwd, kubeconfig));
  if (beside.startsWith('..') || isAbsolute(beside)) {
    throw new CurlewError('USAGE', `cannot adopt the cluster: ${kubeconfig} is not in the folder of its file`, {
      hint: `copy it there: the file names it by a path from its folder, ${folder}`,
    });
  }
  if (out !== undefined) await refuseExisting(resolve(cwd, out), undefined);
  const { call } = await openClusterApi({ kubeconfig }, context);
  const adopted = await adoptedCluster(call, { name, kubeconfig: beside });
  if (out !== undefined) await writeText(resolve(cwd, out), adopted.text, { force: false });
  return adopted;
});
