/** Certificate authorities: one that signs itself, and others that sign certificates of clients. Pure, but for random keys and serial numbers. */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { secret, type Secret } from '../../core/secret.ts';
import { encodeSubject, type RequestSubject } from './certificate-request.ts';
import {
  BIT_STRING,
  COMMON_NAME,
  der,
  ECDSA_SHA256,
  elementsIn,
  INTEGER,
  namePart,
  OCTET_STRING,
  oid,
  pem,
  RSA_SHA256,
  SEQUENCE,
  derTime,
} from './der.ts';

export interface Authority {
  /** A certificate in PEM. */
  readonly certificate: string;
  /** PKCS#8 in PEM. */
  readonly key: Secret;
}

const TRUE = Buffer.from([0x01, 0x01, 0xff]);
const EMPTY = Buffer.alloc(0);
const [KEY_ID, KEY_USAGE, ALTERNATIVE_NAME, CONSTRAINTS] = ['551d0e', '551d0f', '551d11', '551d13'];
const [AUTHORITY_KEY_ID, EXTENDED_USAGE, CLIENT_AUTH] = ['551d23', '551d25', '2b06010505070302'];
/** Longer ones would hold the process for seconds. */
const RSA_BITS = { from: 2048, to: 8192 };
const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
/** Clocks of clients and servers differ by less. */
const EARLIER_MS = 300_000;

function extension(id: string, value: Uint8Array, isCritical = false): Buffer {
  return der(SEQUENCE, oid(id), ...(isCritical ? [TRUE] : []), der(OCTET_STRING, value));
}

interface Content {
  /** DER, as are `subject` and `spki`. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly spki: Uint8Array;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly extensions: readonly Uint8Array[];
}

/** Signs with the key of the issuer; in PEM. */
function certificateOf({ issuer, subject, spki, from, to, extensions }: Content, key: KeyObject): string {
  const serial = randomBytes(16);
  // Positive, and without leading zeros.
  serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f);
  const algorithm = key.asymmetricKeyType === 'rsa' ? RSA_SHA256 : ECDSA_SHA256;
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    issuer,
    der(SEQUENCE, derTime(new Date(from)), derTime(new Date(to))),
    subject,
    spki,
    der(0xa3, der(SEQUENCE, ...extensions)),
  );
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', body, key));
  return pem('CERTIFICATE', der(SEQUENCE, body, algorithm, signature));
}

/** An ECDSA P-256 authority with this common name, valid from an hour ago for `days`. The name is also its DNS name. */
export function makeAuthority(
  name: string,
  { days, now = Date.now() }: { readonly days: number; readonly now?: number },
): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const title = der(SEQUENCE, namePart(COMMON_NAME, name));
  const hour = 3_600_000;
  const extensions = [
    extension(CONSTRAINTS, der(SEQUENCE, TRUE), true),
    // digitalSignature, keyEncipherment, keyCertSign
    extension(KEY_USAGE, der(BIT_STRING, Buffer.from([0x02, 0xa4])), true),
    extension(KEY_ID, der(OCTET_STRING, createHash('sha1').update(spki).digest())),
    extension(ALTERNATIVE_NAME, der(SEQUENCE, der(0x82, Buffer.from(name)))),
  ];
  const validity = { from: now - hour, to: now + days * 24 * hour };
  return {
    certificate: certificateOf({ issuer: title, subject: title, spki, ...validity, extensions }, privateKey),
    key: secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  };
}

/** An authority that signs certificates of others. */
export interface Signer {
  readonly certificate: X509Certificate;
  readonly key: KeyObject;
}

/**
 * The first certificate of a text in PEM with its private key in PEM; or why they are no authority that can sign now, without a word of
 * the key. `now` in milliseconds since 1970.
 */
export function readSigner(
  texts: { readonly certificate: string; readonly key: Secret },
  now: number,
): Signer | { readonly problem: string } {
  const certificate = attempt(() => new X509Certificate(texts.certificate));
  if (certificate === undefined) return { problem: 'its certificate (tls.crt) is none in PEM' };
  const key = attempt(() => createPrivateKey(texts.key.reveal()));
  if (key === undefined) return { problem: 'its key (tls.key) is none in PEM, or needs a password' };
  if (!isTaken(key))
    return { problem: `its key is neither of ECDSA nor of RSA with ${RSA_BITS.from} to ${RSA_BITS.to} bits` };
  if (!certificate.checkPrivateKey(key)) return { problem: 'its key is not that of its certificate' };
  if (!certificate.ca) return { problem: 'its certificate is not of an authority: it may not sign others' };
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (now < from) return { problem: `its certificate is valid only from ${new Date(from).toISOString()}` };
  if (now >= to) return { problem: `its certificate has expired at ${new Date(to).toISOString()}` };
  return { certificate, key };
}

function isTaken({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): boolean {
  const { modulusLength = 0, namedCurve = '' } = asymmetricKeyDetails;
  if (asymmetricKeyType === 'ec') return CURVES.has(namedCurve);
  return asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS.from && modulusLength <= RSA_BITS.to;
}

/** A certificate in PEM for a client, and for nothing else: for at most `lifeS` seconds, and no longer than its authority. */
export function signClient(
  { certificate, key }: Signer,
  { subject, key: publicKey }: { readonly subject: RequestSubject; readonly key: KeyObject },
  { lifeS, now }: { readonly lifeS: number; readonly now: number },
): string {
  const { issuer, keyId } = partsOf(certificate);
  const extensions = [
    extension(CONSTRAINTS, der(SEQUENCE), true),
    // digitalSignature
    extension(KEY_USAGE, der(BIT_STRING, Buffer.from([0x07, 0x80])), true),
    extension(EXTENDED_USAGE, der(SEQUENCE, oid(CLIENT_AUTH))),
    ...(keyId === undefined ? [] : [extension(AUTHORITY_KEY_ID, der(SEQUENCE, der(0x80, keyId)))]),
  ];
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const to = Math.min(now + lifeS * 1000, Date.parse(certificate.validTo));
  return certificateOf({ issuer, subject: encodeSubject(subject), spki, from: now - EARLIER_MS, to, extensions }, key);
}

/** What certificates of an authority name: its subject in DER, and the identifier of its key. */
function partsOf({ raw }: X509Certificate): { readonly issuer: Buffer; readonly keyId: Buffer | undefined } {
  const [whole] = elementsIn(raw);
  const [signed] = elementsIn(whole?.content ?? EMPTY);
  const fields = elementsIn(signed?.content ?? EMPTY);
  const [list] = elementsIn(fields.find(({ whole: [tag] }) => tag === 0xa3)?.content ?? EMPTY);
  const extensions = elementsIn(list?.content ?? EMPTY).map(({ content }) => elementsIn(content));
  const own = extensions.find(([id]) => id?.whole.equals(oid(KEY_ID)) === true)?.at(-1);
  const [keyId] = elementsIn(own?.content ?? EMPTY);
  return { issuer: fields[5]?.whole ?? EMPTY, keyId: keyId?.content };
}

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
