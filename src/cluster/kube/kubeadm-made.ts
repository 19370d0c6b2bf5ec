/**
 * The state that kubeadm has made of a machine, decided here for all that read its cluster: a kubeconfig alone says nothing, because kubeadm
 * writes it long before the cluster takes requests.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, isMissing } from '../../core/errors.ts';

/**
 * `unfinished`: kubeadm init or join has begun, and was cut or still runs; only the run that completes it, or a reset, continues there.
 * `made`: kubeadm has ended, though the node may not be ready yet.
 */
type Made = 'none' | 'unfinished' | 'made';

/** The package of Kubernetes writes it before kubeadm changes anything, and removes it once kubeadm has ended. */
const ATTEMPT = 'curlew/attempt';
const CONFIGS = ['admin.conf', 'kubelet.conf'];

/** `has` says which files are in /etc/kubernetes. */
function madeOf(has: (name: string) => boolean): Made {
  if (has(ATTEMPT)) return 'unfinished';
  return CONFIGS.some(has) ? 'made' : 'none';
}

/** The folder is /etc/kubernetes, or that of another kubeconfig. */
export async function madeIn(folder: string): Promise<Made> {
  const found = new Set<string>();
  for (const name of [ATTEMPT, ...CONFIGS]) {
    const error = await stat(join(folder, name)).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    // A user who must not look into the folder of the mark does not know it.
    if (error === undefined || (name !== ATTEMPT && !isMissing(error))) found.add(name);
  }
  return madeOf((name) => found.has(name));
}

export class Unfinished extends CurlewError {
  constructor() {
    super('CLUSTER_FAILED', 'this machine is in no cluster yet: kubeadm init or join has not finished', {
      hint: 'if no run is in progress, repeat the interrupted one (curlew resume); or remove what it has left: curlew reset',
    });
  }
}
