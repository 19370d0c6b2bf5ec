/** What kube-controller-manager does for a hub: client certificates for requests that were approved. */
import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import {
  BIT_STRING,
  COMMON_NAME,
  der,
  ECDSA_SHA256,
  INTEGER,
  namePart,
  pem,
  SEQUENCE,
  derTime,
} from '../../src/formats/signing/der.ts';
import { encodeSubject, readRequest, type RequestSubject } from '../../src/formats/signing/certificate-request.ts';
import { at, textAt, type ApiClient } from './api-client.ts';
import { isMap, type Json, type JsonObject } from './api-server/fields.ts';

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const DAY = 86_400_000;
const signerKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

export interface Life {
  readonly from?: number;
  readonly days?: number;
}

/** A client certificate in PEM, of a signer that no server of a test knows. */
export function issueCertificate(subject: RequestSubject, key: KeyObject, life: Life = {}): string {
  const { from = Date.now(), days = 30 } = life;
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    der(SEQUENCE, namePart(COMMON_NAME, 'test signer')),
    der(SEQUENCE, derTime(new Date(from)), derTime(new Date(from + days * DAY))),
    encodeSubject(subject),
    key.export({ type: 'spki', format: 'der' }),
  );
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', body, signerKey));
  return pem('CERTIFICATE', der(SEQUENCE, body, ECDSA_SHA256, signature));
}

export async function requestsOf(client: ApiClient): Promise<readonly JsonObject[]> {
  const { body } = await client.get(REQUESTS);
  return (body['items'] ?? []) as readonly JsonObject[];
}

/** `Approved`, `Denied`, or empty. */
export function answerTo(request: Json | undefined): string {
  return textAt(request, 'status.conditions.0.type');
}

export async function answer(client: ApiClient, name: string, type: 'Approved' | 'Denied'): Promise<void> {
  const condition = { type, status: 'True', reason: 'Test', message: 'the test says so' };
  await client.merge(`${REQUESTS}/${name}/approval`, { status: { conditions: [condition] } });
}

/** Signs what is approved for a signer of Kubernetes and has no certificate yet. `subject`: of the certificate, instead of that of the request. */
export async function signApproved(
  client: ApiClient,
  { subject, key, ...life }: Life & { readonly subject?: RequestSubject; readonly key?: KeyObject } = {},
): Promise<void> {
  for (const one of await requestsOf(client)) {
    const status = at(one, 'status');
    if (
      answerTo(one) !== 'Approved' ||
      !textAt(one, 'spec.signerName').startsWith('kubernetes.io/') ||
      (isMap(status) && status['certificate'] !== undefined)
    )
      continue;
    const text = Buffer.from(textAt(one, 'spec.request'), 'base64').toString();
    const asked = readRequest(text);
    if (asked === undefined) throw new Error('the request cannot be read');
    const days = (Number(at(one, 'spec.expirationSeconds')) * 1000) / DAY;
    const certificate = issueCertificate(subject ?? asked.subject, key ?? asked.key, { days, ...life });
    const data = Buffer.from(certificate).toString('base64');
    await client.merge(`${REQUESTS}/${textAt(one, 'metadata.name')}/status`, { status: { certificate: data } });
  }
}
