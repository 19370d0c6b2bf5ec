/** `curlew etcd …`: the data of a cluster, on its control plane. */
import { ETCD_RESTORE, ETCD_SNAPSHOT } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

export const snapshot = commandFor(ETCD_SNAPSHOT, {
  details:
    'Runs on a control plane, whose etcd kubeadm has made. Only root can read the file: it contains all Secrets of the cluster. The file ends with its digest, and is what `etcdctl snapshot save` writes. An upgrade of Kubernetes saves one first.',
  examples: ['curlew etcd snapshot', 'curlew etcd snapshot /media/backup/shop.db'],
  run: async ({ request }, context) => (await import('../../app/etcd-snapshot.ts')).etcdSnapshot(request, context),
  render: ({ file }) => visible(`${file} has the data of this cluster: copy it to another machine`),
});

export const restore = commandFor(ETCD_RESTORE, {
  details:
    'Runs on the only control plane of a cluster that curlew has made, or on one that is left after etcd has lost its quorum for good. The control plane stops, etcd gets the data of the snapshot and one member, and the control plane starts again; what has changed since the snapshot is lost. The name of this machine confirms that no other control plane runs, and that none starts again before it is reset: it has other data. While other control planes have a quorum, the command is refused. The data before stays in the folder of etcd, as member.before-restore- and a time. The same command continues after any interruption.',
  examples: ['curlew etcd restore /media/backup/shop.db --confirm node1'],
  run: async ({ request }, context) => (await import('../../app/etcd-restore.ts')).etcdRestore(request, context),
  render: ({ file, lost }) =>
    [
      `etcd has the data of ${file}; kubectl get nodes,pods -A shows what runs`,
      ...lost.map((name) => `${name}: no longer a control plane. Remove its Node: curlew node remove ${name} --yes`),
      ...(lost.length === 0
        ? []
        : [
            `Keep ${lost.join(', ')} off until reset: etcd there has other data. On each, then: curlew reset --yes; curlew join-token --control-plane here makes the file with which it joins again`,
          ]),
    ]
      .map(visible)
      .join('\n'),
});
