/** A certificate authority that signs itself. Pure, but for the random key and serial number. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { secret, type Secret } from '../../core/secret.ts';
import {
  BIT_STRING,
  COMMON_NAME,
  der,
  ECDSA_SHA256,
  INTEGER,
  namePart,
  OCTET_STRING,
  oid,
  pem,
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
const [KEY_ID, KEY_USAGE, ALTERNATIVE_NAME, CONSTRAINTS] = ['551d0e', '551d0f', '551d11', '551d13'];

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
  const title = der(SEQUENCE, namePart(COMMON_NAME, name));
  const hour = 3_600_000;
  const validity = der(SEQUENCE, derTime(new Date(now - hour)), derTime(new Date(now + days * 24 * hour)));
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
  return {
    certificate: pem('CERTIFICATE', certificate),
    key: secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  };
}
