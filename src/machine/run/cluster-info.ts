/** The facts that kubeadm publishes of a cluster, and whether this machine is part of it. */
import { createHash, X509Certificate } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { CurlewError } from '../../core/errors.ts';
import type { Call } from '../../cluster/kube/call.ts';
import { parseKubeconfig } from '../../cluster/kube/kubeconfig.ts';
import { getObject } from '../../cluster/kube/objects.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { CONFIG_MAPS } from '../../cluster/kube/core-kinds.ts';

const PEM_LIMIT = 1 << 20;

/**
 * The facts that kubeadm publishes for machines that join: where the API server is, and a digest of the key that signs its certificate.
 * `CLUSTER_FAILED` if that is missing.
 */
export async function clusterInfo(
  call: Call,
  doing: string,
): Promise<{ readonly address: string; readonly hash: string }> {
  const configMap = await getObject(call, CONFIG_MAPS, { namespace: 'kube-public', name: 'cluster-info' });
  const text = (configMap?.['data'] as Readonly<Record<string, unknown>> | undefined)?.['kubeconfig'];
  const [cluster] = typeof text === 'string' ? parseKubeconfig('cluster-info', text).clusters.values() : [];
  const { server, 'certificate-authority-data': authority } = cluster?.fields ?? {};
  const url = typeof server === 'string' && URL.canParse(server) ? new URL(server) : undefined;
  try {
    if (url === undefined || typeof authority !== 'string') throw new Error('it names no API server');
    const hash = hashOfKey(Buffer.from(authority, 'base64'));
    return { address: `${url.hostname}:${url.port === '' ? 443 : url.port}`, hash };
  } catch (cause) {
    const what = `cannot ${doing}: the ConfigMap kube-public/cluster-info is not as kubeadm writes it`;
    throw new CurlewError('CLUSTER_FAILED', what, {
      hint: 'kubeadm init phase bootstrap-token writes it again',
      cause,
    });
  }
}

/** The address of all control planes by kubeadm's configuration, with its port if that is not 6443; undefined in a cluster that has none. */
export async function controlPlaneEndpoint(call: Call): Promise<string | undefined> {
  const configMap = await getObject(call, CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' });
  const text = (configMap?.['data'] as Readonly<Record<string, unknown>> | undefined)?.['ClusterConfiguration'];
  return /^controlPlaneEndpoint:[ \t]*["']?([^\s"']+)/m.exec(typeof text === 'string' ? text : '')?.[1];
}

/** `CLUSTER_FAILED` if this machine is part of another cluster than the one with this digest, so that its files are of no use. */
export async function requireOwnCluster(
  hash: string,
  doing: string,
  file = '/etc/kubernetes/pki/ca.crt',
): Promise<void> {
  const authority = await readFound(file, PEM_LIMIT);
  if (authority === undefined || hashOfKey(authority) === hash) return;
  const what = `cannot ${doing}: KUBECONFIG leads to another cluster than that of this machine`;
  throw new CurlewError('CLUSTER_FAILED', what, {
    hint: 'run it on a control plane of the other cluster, or without KUBECONFIG',
  });
}

/** By which a node or a member of etcd is known as that of this machine: it may have another name than the machine. */
export function ownAddresses(): ReadonlySet<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address)));
}

/** The digest of its key, which an authority keeps when it is renewed. */
export function hashOfKey(certificate: Buffer): string {
  const { publicKey } = new X509Certificate(certificate);
  const digest = createHash('sha256').update(publicKey.export({ type: 'spki', format: 'der' }));
  return `sha256:${digest.digest('hex')}`;
}
