/**
 * The state that kubeadm has made of a machine, decided here for all that read its cluster: a kubeconfig alone says nothing, because kubeadm
 * writes it long before the cluster takes requests. Pure: for this machine, and for others over SSH.
 */

/**
 * `unfinished`: kubeadm init or join has begun, and was cut or still runs; only the run that completes it, or a reset, continues there.
 * `made`: kubeadm has ended, though the node may not be ready yet.
 */
export type Made = 'none' | 'unfinished' | 'made';

/** The package of Kubernetes writes it before kubeadm changes anything, and removes it once kubeadm has ended. Below /etc/kubernetes. */
export const ATTEMPT = 'curlew/attempt';
/** Only a control plane has it. */
export const ADMIN_CONF = 'admin.conf';
export const CONFIGS: readonly string[] = [ADMIN_CONF, 'kubelet.conf'];

/** `has` says which of these files are in /etc/kubernetes. */
export function madeOf(has: (name: string) => boolean): Made {
  if (has(ATTEMPT)) return 'unfinished';
  return CONFIGS.some(has) ? 'made' : 'none';
}
