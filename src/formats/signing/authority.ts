/** A certificate authority that signs itself. Pure, but for the random key and serial number. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { secret, type Secret } from '../../core/secret.ts';

export interface Authority {
  /** A certificate in PEM. */
  readonly certificate: string;
  /** PKCS#8 in PEM. */
  readonly key: Secret;
}

const [INTEGER, BIT_STRING, OCTET_STRING, OID, UTF8, SEQUENCE, SET] = [0x02, 0x03, 0x04, 0x06, 0x0c, 0x30, 0x31];
const TRUE = Buffer.from([0x01, 0x01, 0xff]);

/** ITU-T X.690, 10.1: the definite form with the fewest octets. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

function oid(hex: string): Buffer {
  return der(OID, Buffer.from(hex, 'hex'));
}

/** RFC 5280, 4.1.2.5: two digits of the year until 2049. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const isLong = date.getUTCFullYear() >= 2050;
  return der(isLong ? 0x18 : 0x17, Buffer.from(isLong ? digits : digits.slice(2)));
}

const ECDSA_SHA256 = der(SEQUENCE, oid('2a8648ce3d040302'));
const [COMMON_NAME, KEY_ID, KEY_USAGE, ALTERNATIVE_NAME, CONSTRAINTS] = [
  '550403',
  '551d0e',
  '551d0f',
  '551d11',
  '551d13',
];

function extension(id: string, value: Uint8Array, isCritical = false): Buffer {
  return der(SEQUENCE, oid(id), ...(isCritical ? [TRUE] : []), der(OCTET_STRING, value));
}

/** An ECDSA P-256 authority with this common name, valid from an hour ago for `days`. The name is also its DNS name. */
export function makeAuthority(
  name: string,
  { days, now = Date.now() }: { readonly days: number; readonly now?: number },
): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const serial = randomBytes(16);
  // Positive, and without leading zeros.
  serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f);
  const title = der(SEQUENCE, der(SET, der(SEQUENCE, oid(COMMON_NAME), der(UTF8, Buffer.from(name)))));
  const hour = 3_600_000;
  const validity = der(SEQUENCE, time(new Date(now - hour)), time(new Date(now + days * 24 * hour)));
  const extensions = der(
    SEQUENCE,
    extension(CONSTRAINTS, der(SEQUENCE, TRUE), true),
    // digitalSignature, keyEncipherment, keyCertSign
    extension(KEY_USAGE, der(BIT_STRING, Buffer.from([0x02, 0xa4])), true),
    extension(KEY_ID, der(OCTET_STRING, createHash('sha1').update(spki).digest())),
    extension(ALTERNATIVE_NAME, der(SEQUENCE, der(0x82, Buffer.from(name)))),
  );
  const version = der(0xa0, der(INTEGER, Buffer.from([2])));
  const body = der(
    SEQUENCE,
    version,
    der(INTEGER, serial),
    ECDSA_SHA256,
    title,
    validity,
    title,
    spki,
    der(0xa3, extensions),
  );
  const signature = sign('sha256', body, privateKey);
  const certificate = der(SEQUENCE, body, ECDSA_SHA256, der(BIT_STRING, Buffer.from([0]), signature));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  };
}
