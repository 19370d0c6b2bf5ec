/** `curlew etcd …`: the data of a cluster, on its control plane. */
import { ETCD_SNAPSHOT } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

export const snapshot = commandFor(ETCD_SNAPSHOT, {
  details:
    'Runs on a control plane, whose etcd kubeadm has made. Only root can read the file: it contains all Secrets of the cluster. The file ends with its digest, and is what `etcdctl snapshot save` writes. An upgrade of Kubernetes saves one first.',
  examples: ['curlew etcd snapshot', 'curlew etcd snapshot /media/backup/shop.db'],
  run: async ({ request }, context) => (await import('../../app/etcd-snapshot.ts')).etcdSnapshot(request, context),
  render: ({ file }) => visible(`${file} has the data of this cluster: copy it to another machine`),
});
