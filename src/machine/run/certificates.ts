/** The certificates of a node that expire, as kubeadm and the kubelet keep them. */
import { X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, fileError } from '../../core/errors.ts';
import { readFound } from '../../platform/files/state-file.ts';

export interface NodeCertificate {
  /** Path below the folder. */
  readonly name: string;
  /** Milliseconds since 1970; undefined if the file is damaged. */
  readonly expires: number | undefined;
}

/** Below the folder of the kubelet. */
export const KUBELET_CERTIFICATE = 'pki/kubelet-client-current.pem';

/**
 * The way to replace a certificate that has expired. The kubelet asks for its own with the one before; a control plane is not to be
 * removed for it, since the only one has the data of the cluster.
 */
export function whenExpired(name: string, { isControlPlane }: { readonly isControlPlane: boolean }): string {
  if (name !== KUBELET_CERTIFICATE) return 'curlew certificates renew';
  return isControlPlane
    ? 'make /etc/kubernetes/kubelet.conf again (kubernetes.io, Troubleshooting kubeadm, Kubelet client certificate rotation fails)'
    : 'remove the node (curlew node remove), reset its machine, and let it join again';
}

/** The expired ones of all certificates of a node that can be read. `expires` is in ISO 8601. */
export function expiredProblems(
  certificates: readonly { readonly name: string; readonly expires: string }[],
): readonly string[] {
  // A worker has none of kubeadm's, and the file of the API server may be damaged.
  const isControlPlane = certificates.some(({ name }) => name.startsWith('pki/') && name !== KUBELET_CERTIFICATE);
  const expired = certificates.filter(({ expires }) => Date.parse(expires) < Date.now());
  return expired.map(({ name, expires }) => {
    return `the certificate ${name} expired on ${expires.slice(0, 10)}: ${whenExpired(name, { isControlPlane })}`;
  });
}

const FILE_LIMIT = 1 << 20;
/** kubeadm renews the certificates in these; that of kubelet.conf is a file of its own. */
const CONFIGS = ['admin.conf', 'super-admin.conf', 'controller-manager.conf', 'scheduler.conf'];

/** The folder is /etc/kubernetes, or like it. Certificates that sign others are left out: kubeadm does not renew them. */
export async function certificatesIn(folder: string): Promise<readonly NodeCertificate[]> {
  const certificates: NodeCertificate[] = [];
  for (const name of [...(await namesIn(folder, 'pki')), ...(await namesIn(folder, 'pki/etcd')), ...CONFIGS]) {
    const one = await certificateOf(folder, name);
    if (one !== undefined) certificates.push(one);
  }
  return certificates;
}

/** Undefined for a file that is missing, that signs others, or that is a kubeconfig with other credentials. */
export async function certificateOf(folder: string, name: string): Promise<NodeCertificate | undefined> {
  const text = (await readFound(join(folder, name), FILE_LIMIT))?.toString('utf8');
  if (text === undefined) return undefined;
  const [, data] = /^ *client-certificate-data: *(\S+)$/m.exec(text) ?? [];
  if (name.endsWith('.conf') && data === undefined && /\busers\b/.test(text)) return undefined;
  try {
    const { validTo, ca } = new X509Certificate(data === undefined ? text : Buffer.from(data, 'base64'));
    return ca ? undefined : { name, expires: Date.parse(validTo) };
  } catch {
    return { name, expires: undefined };
  }
}

async function namesIn(folder: string, below: string): Promise<readonly string[]> {
  try {
    const names = (await readdir(join(folder, below))).filter((name) => name.endsWith('.crt'));
    return names.toSorted().map((name) => join(below, name));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw fileError(`list ${join(folder, below)}`, error);
  }
}
