/**
 * Sigstore bundles of version 0.3 with only a key: no certificate, no log
 * (github.com/sigstore/protobuf-specs, sigstore_bundle.proto).
 */
import type { KeyObject } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import { isObject, shallowJson } from '../../core/json.ts';
import { keyHint } from './keys.ts';

const MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';

/** A bundle as JSON text, with content that was signed with the key. */
export function formatBundle(content: object, key: KeyObject): string {
  const bundle = { mediaType: MEDIA_TYPE, verificationMaterial: { publicKey: { hint: keyHint(key) } }, ...content };
  return `${JSON.stringify(bundle)}\n`;
}

/** Creates the error for a file from outside that is not a signature. */
export type Unreadable = (what: string) => CurlewError;

export function unreadable(from: string, hint: string): Unreadable {
  return (what) => new CurlewError('SIGNATURE_INVALID', `read the signature ${from}: ${what}`, { hint });
}

/** Parses a bundle from outside, with unchecked fields. */
export function parseBundle(text: string, bad: Unreadable): Record<string, unknown> {
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch {
    throw bad('it is not JSON');
  }
  if (!isObject(value)) throw bad('it is not an object');
  if (value['mediaType'] !== MEDIA_TYPE) throw bad(`its mediaType is not ${MEDIA_TYPE}`);
  return value;
}

/** The bytes of a text in base64; undefined for any other form. */
export function fromBase64(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? bytes : undefined;
}
