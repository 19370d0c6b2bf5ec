/** Requests for client certificates (PKCS#10, RFC 2986) of one exact form: a name, organizations and units, and an ECDSA P-256 key. Pure. */
import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import {
  BIT_STRING,
  COMMON_NAME,
  der,
  ECDSA_SHA256,
  elementsIn,
  INTEGER,
  namePart,
  oid,
  ORGANIZATION,
  pem,
  SEQUENCE,
  UNIT,
} from './der.ts';

export interface RequestSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly units?: readonly string[] | undefined;
}

const MAX_BYTES = 8192;
const EMPTY = Buffer.alloc(0);

/** The signed part: no attributes, so no other names and no extensions. */
function bodyOf(subject: RequestSubject, spki: Uint8Array): Buffer {
  return der(SEQUENCE, der(INTEGER, Buffer.from([0])), encodeSubject(subject), spki, der(0xa0));
}

/** A subject in the order that certificates have. */
export function encodeSubject({ commonName, organizations, units = [] }: RequestSubject): Buffer {
  return der(
    SEQUENCE,
    ...organizations.map((text) => namePart(ORGANIZATION, text)),
    ...units.map((text) => namePart(UNIT, text)),
    namePart(COMMON_NAME, commonName),
  );
}

/** The request in PEM, signed with the private key. */
export function makeRequest(subject: RequestSubject, key: KeyObject): string {
  const body = bodyOf(subject, createPublicKey(key).export({ type: 'spki', format: 'der' }));
  return pem('CERTIFICATE REQUEST', encode(body, sign('sha256', body, key)));
}

function encode(body: Uint8Array, signature: Uint8Array): Buffer {
  return der(SEQUENCE, body, ECDSA_SHA256, der(BIT_STRING, Buffer.from([0]), signature));
}

/** The texts of all parts of a name with this identifier. */
function textsIn(subject: Buffer, id: string): readonly string[] {
  const parts = elementsIn(subject).flatMap(({ content }) => elementsIn(content));
  return parts.flatMap(({ content }) => {
    const [kind, text] = elementsIn(content);
    return kind?.whole.equals(oid(id)) === true && text !== undefined ? [text.content.toString()] : [];
  });
}

/**
 * Subject and public key of a request of exactly the form that {@link makeRequest} writes, with a valid signature; undefined for any
 * other text. What is read is encoded again and compared byte by byte, so that no other reader can find another name in it.
 */
export function readRequest(text: string): { readonly subject: RequestSubject; readonly key: KeyObject } | undefined {
  const [, inner = ''] =
    /^-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE REQUEST-----\n$/.exec(
      text.length > MAX_BYTES ? '' : text,
    ) ?? [];
  const bytes = Buffer.from(inner, 'base64');
  const [whole] = elementsIn(bytes);
  const [signed, , signatureBits] = elementsIn(whole?.content ?? EMPTY);
  const [, name, publicKey] = elementsIn(signed?.content ?? EMPTY);
  const named = name?.content ?? EMPTY;
  const [commonName = ''] = textsIn(named, COMMON_NAME);
  const units = textsIn(named, UNIT);
  const subject = { commonName, organizations: textsIn(named, ORGANIZATION), ...(units.length > 0 && { units }) };
  const spki = publicKey?.whole ?? EMPTY;
  const body = bodyOf(subject, spki);
  // The number of unused bits comes before it.
  const signature = signatureBits?.content.subarray(1) ?? EMPTY;
  if (!encode(body, signature).equals(bytes)) return undefined;
  try {
    const key = createPublicKey({ key: spki, type: 'spki', format: 'der' });
    const isCurve = key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    return isCurve && verify('sha256', body, key, signature) ? { subject, key } : undefined;
  } catch {
    return undefined;
  }
}
