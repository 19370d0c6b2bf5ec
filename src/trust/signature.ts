/**
 * Signatures over a text, detached, as Sigstore bundles of version 0.3 with the key alone: no certificate, no log
 * (github.com/sigstore/protobuf-specs, sigstore_bundle.proto).
 */
import { createHash, sign, verify, type KeyObject } from 'node:crypto';
import { CurlewError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { keyHint, type TrustedKey } from './keys.ts';

const MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';
/** Those of cosign hold certificates and entries of logs: some thousand bytes. */
export const SIGNATURE_LIMIT = 1 << 20;

function sha256(text: Uint8Array): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Signs a text with a key of {@link readPrivateKey}; returns the bundle as JSON text. */
export function signText(text: Uint8Array, key: KeyObject): string {
  const bundle = {
    mediaType: MEDIA_TYPE,
    verificationMaterial: { publicKey: { hint: keyHint(key) } },
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: sha256(text).toString('base64') },
      signature: sign('sha256', text, key).toString('base64'),
    },
  };
  return `${JSON.stringify(bundle)}\n`;
}

export interface SignedText {
  /** For messages: what is signed, and where its signature was read from. */
  readonly name: string;
  readonly text: Uint8Array;
  readonly signature: string;
  readonly from: string;
}

/**
 * Holds a signature against the keys that are trusted; returns the one that made it. `SIGNATURE_INVALID` says whether
 * the signature is unreadable, of another text, or by nobody trusted. What it says of certificates, logs and times is
 * not asked: the key alone decides, so no network is needed.
 */
export function verifyText({ name, text, signature, from }: SignedText, trusted: readonly TrustedKey[]): TrustedKey {
  const { digest, bytes } = parseSignature(signature, from);
  if (!sha256(text).equals(digest)) {
    throw invalid(
      `verify ${name}: the signature ${from} is of another file`,
      'fetch both again, from where they belong together',
    );
  }
  const found = trusted.find(({ key }) => verify('sha256', text, key, bytes));
  if (found !== undefined) return found;
  const names = trusted.map((key) => key.name).join(', ');
  throw invalid(
    `verify ${name}: the signature ${from} was not made with ${names}`,
    'ask who signed it for the public key',
  );
}

function parseSignature(text: string, from: string): { readonly digest: Buffer; readonly bytes: Buffer } {
  const bad = (what: string): CurlewError =>
    invalid(`read the signature ${from}: ${what}`, 'curlew sign and cosign sign-blob --bundle make such files');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw bad('it is not JSON');
  }
  if (!isObject(value)) throw bad('it is no object');
  const { mediaType, messageSignature } = value;
  if (mediaType !== MEDIA_TYPE) throw bad(`its mediaType is not ${MEDIA_TYPE}`);
  if (!isObject(messageSignature)) throw bad('it has no messageSignature');
  const { messageDigest, signature } = messageSignature;
  if (!isObject(messageDigest) || messageDigest['algorithm'] !== 'SHA2_256') throw bad('its digest is not of SHA2_256');
  const digest = base64(messageDigest['digest']);
  const bytes = base64(signature);
  if (digest?.byteLength !== 32) throw bad('its digest is damaged');
  if (bytes === undefined) throw bad('its signature is damaged');
  return { digest, bytes };
}

function base64(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? bytes : undefined;
}

function invalid(message: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', message, { hint });
}
