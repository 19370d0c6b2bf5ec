/** `curlew etcd …`: the data of a cluster, on its control plane. */
import { ETCD_RESTORE, ETCD_SNAPSHOT } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

export const snapshot = commandFor(ETCD_SNAPSHOT, {
  details:
    'Runs on a control plane, whose etcd kubeadm has made. The file is a tar with the data of etcd (etcd.db, what `etcdctl snapshot save` writes), the keys that all control planes share, and the configuration with which Secrets are encrypted, so that another machine can take over. Only root can read it, and with --recipient only who has the identity (age --decrypt opens it). An upgrade of Kubernetes saves one first. With --every, the command also starts a timer of systemd that repeats it with the same options; variables such as credentials of S3 come from /etc/kubernetes/curlew/snapshot.env.',
  examples: [
    'curlew etcd snapshot',
    'curlew etcd snapshot /media/backup/shop.tar --recipient age1abc',
    'curlew etcd snapshot --every 6h --copy-to s3://backup/shop --recipient age1abc',
  ],
  run: async ({ request }, context) => (await import('../../app/etcd-snapshot.ts')).etcdSnapshot(request, context),
  render: ({ file, copy, timer }) => [
    `${file} has the data and the keys of this cluster${copy === undefined ? ': copy it to another machine' : `, and ${copy} is its copy`}`,
    ...(timer === undefined
      ? []
      : [`${timer} repeats this: systemctl list-timers shows when, systemctl disable --now ${timer} ends it`]),
  ],
});

export const restore = commandFor(ETCD_RESTORE, {
  details:
    'Runs on the only control plane of a cluster that curlew has made, or on one that is left after etcd has lost its quorum for good. The control plane stops, etcd gets the data of the snapshot and one member, and the control plane starts again; what has changed since the snapshot is lost. The name of this machine confirms that no other control plane runs, and that none starts again before it is reset: it has other data. While other control planes have a quorum, the command is refused. A snapshot of another cluster is refused, too. On a machine without Kubernetes, in the unpacked bundle, the command keeps the snapshot for ./install.sh, which makes the control plane from it. The data before stays in the folder of etcd, as member.before-restore- and a time. The same command continues after any interruption.',
  examples: ['curlew etcd restore /media/backup/shop.tar --confirm node1'],
  run: async ({ request }, context) => (await import('../../app/etcd-restore.ts')).etcdRestore(request, context),
  render: ({ file, lost, waiting }) => {
    if (waiting !== undefined) {
      return visible(
        `the next ./install.sh makes the control plane from ${file}: run it with the settings of that cluster, at its address. Until then, rm -r ${waiting} ends this`,
      );
    }
    const names = lost.join(', ');
    return [
      `etcd has the data of ${file}; kubectl get nodes,pods -A shows what runs`,
      ...lost.map((name) => `${name}: no longer a control plane. Remove its Node: curlew node remove ${name} --yes`),
      ...(lost.length === 0
        ? []
        : [
            `Keep ${names} off until reset: etcd there has other data. On each, then: curlew reset --yes; curlew join-token --control-plane here makes the file with which it joins again`,
          ]),
    ];
  },
});
