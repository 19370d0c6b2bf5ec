/** The state that kubeadm has made of this machine. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, isMissing } from '../../core/errors.ts';
import { ATTEMPT, CONFIGS, madeOf, type Made } from '../../core/kubeadm.ts';

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
