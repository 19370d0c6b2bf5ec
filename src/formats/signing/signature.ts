/** Detached signatures over a text, in Sigstore bundles. */
import { createHash, sign, verify, type KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { shallowJson } from '../../core/json.ts';
import { fits } from '../../core/schema.ts';
import type { TrustedKey } from './keys.ts';
import { base64, formatBundle, parseBundle, unreadable } from './sigstore.ts';
import { refused, UNKNOWN_KEY } from './statement.ts';

/** Size limit in bytes. Those of cosign contain certificates and log entries: a few thousand bytes. */
export const SIGNATURE_LIMIT = 1 << 20;

function sha256(text: Uint8Array): Buffer {
  return createHash('sha256').update(text).digest();
}

const bareSignature = v.object({ messageSignature: v.unknown(), dsseEnvelope: v.optional(v.undefined()) });

/** True for a signature over a text itself, as from `cosign sign-blob`, instead of a statement. */
export function isBareSignature(text: string): boolean {
  try {
    return fits(bareSignature, shallowJson(text));
  } catch {
    return false;
  }
}

/** A signature over a text itself as JSON text, as `cosign sign-blob` makes it: it says nothing of what the text is. */
export function signText(text: Uint8Array, key: KeyObject): string {
  const messageDigest = { algorithm: 'SHA2_256', digest: sha256(text).toString('base64') };
  return formatBundle(
    { messageSignature: { messageDigest, signature: sign('sha256', text, key).toString('base64') } },
    key,
  );
}

export interface SignedText {
  /** For messages: the signed file, and where its signature was read from. */
  readonly name: string;
  readonly text: Uint8Array;
  readonly signature: string;
  readonly from: string;
}

/**
 * Verifies a signature with the trusted keys; returns the one that signed. The message of `SIGNATURE_INVALID` distinguishes
 * signatures that are unreadable, of another text, or by an untrusted key. Ignores certificates, logs and times: the key
 * alone decides, so no network is needed.
 */
export function verifyText({ name, text, signature, from }: SignedText, trusted: readonly TrustedKey[]): TrustedKey {
  const { digest, bytes } = parseSignature(signature, from);
  if (!sha256(text).equals(digest)) {
    throw refused(name, `the signature ${from} belongs to another file`, 'fetch both again from the same source');
  }
  const signer = trusted.find(({ key }) => verify('sha256', text, key, bytes));
  if (signer !== undefined) return signer;
  const names = trusted.map((key) => key.name).join(', ');
  throw refused(name, `the signature ${from} was not made with ${names}`, UNKNOWN_KEY);
}

const messageSignature = v.object({
  messageDigest: v.object({ algorithm: v.literal('SHA2_256'), digest: base64 }),
  signature: base64,
});

function parseSignature(text: string, from: string): { readonly digest: Buffer; readonly bytes: Buffer } {
  const bad = unreadable(from, 'use a file from curlew sign or cosign sign-blob --bundle');
  const { messageDigest, signature } = parseBundle(text, { messageSignature }, bad).messageSignature;
  const digest = Buffer.from(messageDigest.digest, 'base64');
  if (digest.byteLength !== 32) throw bad('its digest is damaged');
  return { digest, bytes: Buffer.from(signature, 'base64') };
}
