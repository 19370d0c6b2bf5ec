/** `curlew certificates renew`: the certificates of a control plane. */
import { CERTIFICATES_RENEW } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

function days(count: number | undefined): string {
  if (count === undefined) return 'damaged';
  return count < 0 ? `expired ${-count} days ago` : `${count} days`;
}

export const command = commandFor(CERTIFICATES_RENEW, {
  details:
    'Runs on each control plane. kubeadm renews its certificates for a year, also expired ones; then etcd, the API server, the controller manager and the scheduler restart one after the other, unless another member of etcd is not healthy and it would lose its quorum. An upgrade of Kubernetes renews them, too. The certificates that sign the others stay, and the kubelet renews its own. The package kubernetes starts a timer of systemd that looks each 12 hours, and renews what expires within 30 days; `curlew status` names a renewal that has failed.',
  examples: [
    'curlew certificates renew --dry-run',
    'curlew certificates renew',
    'curlew certificates renew --within 30d --every 12h',
  ],
  run: async ({ request, options }, context) =>
    (await import('../../app/certificates-renew.ts')).renewCertificates(request, context, options),
  render: ({ certificates, timer }) =>
    (certificates.length === 0 ? 'this machine has no certificates of kubeadm\n' : '') +
    certificates
      .map(({ name, before, after }) => `${name}: ${days(before)}${after === undefined ? '' : ` -> ${days(after)}`}`)
      .map(visible)
      .join('\n') +
    (timer === undefined ? '' : `\n${timer} renews them from now on`),
});
