/** Replaces the data of the etcd of the only control plane by a snapshot. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd } from '../kube/etcd.ts';
import { folderOf } from '../node/install-folder.ts';
import { kubernetesTask } from '../node/kubernetes-task.ts';
import { ETCD_RESTORE } from '../requests/node.ts';
import { requireWhole } from '../machine/run/snapshots.ts';

/** `CLUSTER_FAILED` for a snapshot that is not whole, unless it is confirmed, and for a cluster that has other members. */
export const etcdRestore = useCase(
  ETCD_RESTORE,
  async (request, context: Context): Promise<{ readonly file: string }> => {
    const file = resolve(context.cwd, request.file);
    await requireWhole(file);
    using etcd = await openEtcd({ signal: context.signal });
    const members = await etcd?.members().catch((error: unknown) => {
      context.signal.throwIfAborted();
      if (error instanceof CurlewError) return undefined;
      throw error;
    });
    requireConfirmed(
      members?.map(({ name }) => name),
      request.confirm,
    );
    await kubernetesTask(folderOf(request, context), ['kubernetes_restore_etcd', file], context);
    return { file };
  },
);

/** Without members etcd does not answer here, which says nothing about those of other machines. */
export function requireConfirmed(members: readonly string[] | undefined, confirm: string | undefined): void {
  const own = hostname().toLowerCase();
  if (confirm !== undefined && confirm !== own) {
    throw new CurlewError('USAGE', `--confirm ${confirm}: this machine is ${own}`);
  }
  if (members !== undefined && members.length > 1) {
    throw new CurlewError('CLUSTER_FAILED', `cannot restore etcd: it has ${members.length} members that agree`, {
      hint: 'curlew node remove the other control planes first; they join again afterwards',
    });
  }
  if (confirm !== undefined) return;
  if (members === undefined) {
    throw new CurlewError(
      'CLUSTER_FAILED',
      'cannot restore etcd: it does not answer here, and another control plane may run with its data',
      { hint: `switch off all other control planes until they are reset; then add --confirm ${own}` },
    );
  }
  throw new CurlewError('CLUSTER_FAILED', 'cannot restore etcd: the cluster runs, and would lose its changes', {
    hint: `save it first (curlew etcd snapshot); then add --confirm ${own}`,
  });
}
