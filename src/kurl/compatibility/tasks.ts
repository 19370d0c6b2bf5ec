/** The tasks of kURL's tasks.sh, and their replacements here. */
import { notedRows, type Row } from './rows.ts';

const MANUAL = 'absent: do it manually with kubectl';
const MOVED = 'absent: storage is not migrated: migrate it with kURL before the switch';
const STEPS =
  'absent: a bundle has everything that its run needs, with `curlew bundle --upgrade-from` also the steps of an upgrade';

const NOTES: Readonly<Record<string, string>> = {
  'load-images': 'same: loads only missing images; accepts `airgap` and `kurl-install-directory`',
  'generate-admin-user': MANUAL,
  reset:
    'differs: calls the removal hooks of add-ons and removes the files that runs installed; `kubeadm reset` removes Kubernetes',
  'kotsadm-accept-tls-uploads print-registry-login': MANUAL,
  'join-token':
    'differs: writes a file for one machine, valid for one hour, and prints no token; `--control-plane` instead of `ha`',
  'set-kubeconfig-server taint-primaries': MANUAL,
  'migrate-pvcs migrate-rgw-to-minio remove-rook-ceph': MOVED,
  'longhorn-node-initilize': 'absent: the hooks of the add-on prepare the node',
  'rook-10-to-14': MOVED,
  'rook-10-to-14-images rook-upgrade-load-images kubernetes-upgrade-load-assets': STEPS,
  'weave-to-flannel-primary weave-to-flannel-secondary':
    'absent: networks are not changed: change them with kURL before the switch',
  'migrate-to-multinode-storage': MOVED,
};

export const TASKS: readonly Row[] = notedRows(NOTES);

/** The task with this name; dashes and underscores are equal. */
export function taskOf(word: string): Row | undefined {
  const name = word.replaceAll('_', '-');
  return TASKS.find((task) => task.name === name);
}
