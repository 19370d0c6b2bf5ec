/** Requests for certificates of agents. Pure. */
import { createHash, type KeyObject } from 'node:crypto';

/** The signer in kube-controller-manager of client certificates. */
const SIGNER = 'kubernetes.io/kube-apiserver-client';
/** Seconds that a certificate is valid; a hub may make it shorter. */
const LIFE_S = 30 * 86_400;

export const REQUESTS = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
} as const;

/** The API server adds a random part, so that the name of a request cannot be taken before. */
export function requestPrefix(cluster: string): string {
  return `curlew-${cluster}-`;
}

/** `request` in PEM. */
export function requestObject(cluster: string, request: string): object {
  return {
    apiVersion: REQUESTS.apiVersion,
    kind: REQUESTS.kind,
    metadata: { generateName: requestPrefix(cluster) },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: SIGNER,
      usages: ['client auth'],
      expirationSeconds: LIFE_S,
    },
  };
}

/** What people compare of a public key. */
export function fingerprintOf(key: KeyObject): string {
  return `SHA256:${createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')}`;
}
