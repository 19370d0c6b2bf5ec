/** Requests for client certificates (PKCS#10, RFC 2986) of one exact form: one name, one organization, an ECDSA P-256 key. Pure. */
import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import {
  BIT_STRING,
  COMMON_NAME,
  der,
  ECDSA_SHA256,
  INTEGER,
  namePart,
  oid,
  ORGANIZATION,
  pem,
  SEQUENCE,
} from './der.ts';

export interface RequestSubject {
  readonly commonName: string;
  readonly organization: string;
}

/** Bytes of a P-256 key with its algorithm (RFC 5480). */
const KEY_BYTES = 91;
const MAX_BYTES = 4096;

/** The signed part: no attributes, so no other names and no extensions. */
function bodyOf({ commonName, organization }: RequestSubject, spki: Uint8Array): Buffer {
  const name = der(SEQUENCE, namePart(ORGANIZATION, organization), namePart(COMMON_NAME, commonName));
  return der(SEQUENCE, der(INTEGER, Buffer.from([0])), name, spki, der(0xa0));
}

/** The request in PEM, signed with the private key. */
export function makeRequest(subject: RequestSubject, key: KeyObject): string {
  const body = bodyOf(subject, createPublicKey(key).export({ type: 'spki', format: 'der' }));
  return pem('CERTIFICATE REQUEST', encode(body, sign('sha256', body, key)));
}

function encode(body: Uint8Array, signature: Uint8Array): Buffer {
  return der(SEQUENCE, body, ECDSA_SHA256, der(BIT_STRING, Buffer.from([0]), signature));
}

/** The text of the part of a name that comes first. */
function textOf(bytes: Buffer, id: string): string {
  const part = oid(id);
  const index = bytes.indexOf(part);
  // Tag and length of the text follow.
  const from = index + part.length + 2;
  return index === -1 ? '' : bytes.toString('utf8', from, from + (bytes[from - 1] ?? 0));
}

/**
 * Subject and public key of a request of exactly the form that {@link makeRequest} writes, with a valid signature; undefined for any
 * other text. What is read is encoded again and compared byte by byte, so that no other reader can find another name in it.
 */
export function readRequest(text: string): { readonly subject: RequestSubject; readonly key: KeyObject } | undefined {
  const [, inner = ''] =
    /^-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE REQUEST-----\n$/.exec(
      text.slice(0, MAX_BYTES),
    ) ?? [];
  const bytes = Buffer.from(inner, 'base64');
  const subject = { commonName: textOf(bytes, COMMON_NAME), organization: textOf(bytes, ORGANIZATION) };
  // The body begins behind the header of the whole, and ends with the key and two bytes for no attributes.
  const [, first = 0] = bytes;
  const from = first < 0x80 ? 2 : 2 + (first & 0x7f);
  const end = from + bodyOf(subject, Buffer.alloc(KEY_BYTES)).length;
  const spki = bytes.subarray(end - 2 - KEY_BYTES, end - 2);
  const body = bodyOf(subject, spki);
  // Tag, length and the number of unused bits come before it.
  const signature = bytes.subarray(end + ECDSA_SHA256.length + 3);
  if (!encode(body, signature).equals(bytes)) return undefined;
  try {
    const key = createPublicKey({ key: spki, type: 'spki', format: 'der' });
    const isCurve = key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    return isCurve && verify('sha256', body, key, signature) ? { subject, key } : undefined;
  } catch {
    return undefined;
  }
}
