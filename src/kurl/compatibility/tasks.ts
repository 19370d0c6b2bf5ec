/** The tasks of kURL's tasks.sh, and what does the same here. */
import { rows, type Row } from './rows.ts';

const BY_HAND = 'absent: by hand, with kubectl';
const MOVED = 'absent: storage is not moved: with kURL, before moving over';
const STEPS = 'absent: a bundle brings all that its run needs; steps are bundles and runs of their own';

const NOTES: Readonly<Record<string, string>> = {
  'load-images': 'same: only what is missing; `airgap` and `kurl-install-directory` are taken',
  'generate-admin-user': BY_HAND,
  reset:
    'differs: calls the hooks of add-ons that remove them, and removes what runs have put there; Kubernetes itself by `kubeadm reset`',
  'kotsadm-accept-tls-uploads': BY_HAND,
  'print-registry-login': BY_HAND,
  'join-token':
    'absent: `kubeadm token create --print-join-command` on a primary; its values go into the settings of `join.sh`',
  'set-kubeconfig-server': BY_HAND,
  'taint-primaries': BY_HAND,
  'migrate-pvcs': MOVED,
  'migrate-rgw-to-minio': MOVED,
  'remove-rook-ceph': MOVED,
  'longhorn-node-initilize': 'absent: hooks of the add-on prepare a node',
  'rook-10-to-14': MOVED,
  'rook-10-to-14-images': STEPS,
  'rook-upgrade-load-images': STEPS,
  'kubernetes-upgrade-load-assets': STEPS,
  'weave-to-flannel-primary': 'absent: networks are not changed: with kURL, before moving over',
  'weave-to-flannel-secondary': 'absent: networks are not changed: with kURL, before moving over',
  'migrate-to-multinode-storage': MOVED,
};

export const TASKS: readonly Row[] = rows(Object.keys(NOTES).join(' '), NOTES);

/** The task of this name, with dashes or underscores. */
export function taskOf(word: string): Row | undefined {
  const name = word.replaceAll('_', '-');
  return TASKS.find((task) => task.name === name);
}
