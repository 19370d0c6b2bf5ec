/** Saves the data of the etcd of this control plane. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd } from '../cluster/kube/etcd.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { ageRecipient } from '../machine/run/age.ts';
import { keepSnapshot, saveSnapshot } from '../machine/run/snapshots.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { ETCD_SNAPSHOT } from '../requests/node.ts';

/** `CLUSTER_FAILED` where no member of etcd is. */
export const etcdSnapshot = useCase(
  ETCD_SNAPSHOT,
  async (request, context: Context): Promise<{ readonly file: string }> => {
    const file = request.file === undefined ? undefined : resolve(context.cwd, request.file);
    if (file !== undefined) await refuseExisting(file, undefined);
    const recipients = request.recipient?.map(ageRecipient);
    using etcd = await openEtcd({ signal: context.signal });
    if (etcd === undefined) {
      throw new CurlewError('CLUSTER_FAILED', 'cannot save etcd: kubeadm has made no member of it on this machine', {
        hint: 'run it as root on a control plane',
      });
    }
    const { report, signal } = context;
    const options = { directory: folderOf(request, context), recipients, report, signal };
    if (file === undefined) return { file: await keepSnapshot(etcd, new Date(), options) };
    await saveSnapshot(etcd, file, new Date(), options);
    return { file };
  },
);
