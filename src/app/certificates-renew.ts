/** Renews the certificates that kubeadm has made on this control plane. */
import { X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { folderOf } from '../node/install-folder.ts';
import { kubernetesTask } from '../node/kubernetes-task.ts';
import { readFound } from '../platform/files/state-file.ts';
import { CERTIFICATES_RENEW } from '../requests/node.ts';

export interface CertificateDays {
  /** Path below /etc/kubernetes. */
  readonly name: string;
  /** Days that are left, rounded down; negative if it has expired. */
  readonly before: number;
  /** Absent in a preview. */
  readonly after?: number | undefined;
}

const FOLDER = '/etc/kubernetes';
const FILE_LIMIT = 1 << 20;
const DAY_MS = 24 * 60 * 60_000;

/** `CLUSTER_FAILED` on a machine that is no control plane. */
export const renewCertificates = useCase(
  CERTIFICATES_RENEW,
  async (
    request,
    context: Context,
    { dryRun = false }: { readonly dryRun?: boolean } = {},
  ): Promise<{ readonly certificates: readonly CertificateDays[] }> => {
    const before = await daysOf(FOLDER, new Date());
    if (!dryRun && !before.has('pki/apiserver.crt')) {
      throw new CurlewError('CLUSTER_FAILED', `cannot renew certificates: ${FOLDER}/pki has none of an API server`, {
        hint: 'run it as root on a control plane; the kubelet of a worker renews its own certificate',
      });
    }
    if (!dryRun) await kubernetesTask(folderOf(request, context), ['kubernetes_renew_certificates'], context);
    const after = dryRun ? new Map<string, number>() : await daysOf(FOLDER, new Date());
    return { certificates: [...before].map(([name, left]) => ({ name, before: left, after: after.get(name) })) };
  },
);

/** Days that are left of each certificate that kubeadm renews, by its path below the folder; those that sign others are not. */
export async function daysOf(folder: string, now: Date): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const below of ['pki', 'pki/etcd', '.']) {
    for (const name of await namesIn(join(folder, below))) {
      const path = join(below, name);
      const text = (await readFound(join(folder, path), FILE_LIMIT))?.toString('utf8') ?? '';
      const [, data] = /^ *client-certificate-data: ([\w+/=]+)$/m.exec(text) ?? [];
      const pem = data === undefined ? text : Buffer.from(data, 'base64').toString('utf8');
      if (!pem.includes('-----BEGIN CERTIFICATE-----')) continue;
      const { validTo, ca } = new X509Certificate(pem);
      if (!ca) found.set(path, Math.floor((Date.parse(validTo) - now.getTime()) / DAY_MS));
    }
  }
  return found;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder);
    return names.filter((name) => name.endsWith('.crt') || name.endsWith('.conf')).toSorted();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw fileError(`list ${folder}`, error);
  }
}
