/**
 * Sigstore bundles of version 0.3 with only a key: no certificate, no log
 * (github.com/sigstore/protobuf-specs, sigstore_bundle.proto).
 */
import type { KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { shallowJson } from '../../core/json.ts';
import { readJson } from '../../core/schema.ts';
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
  return (what) => new CurlewError('SIGNATURE_INVALID', `cannot read the signature ${from}: ${what}`, { hint });
}

/** Parses a bundle from outside; the schema describes its content. */
export function parseBundle<Entries extends v.ObjectEntries>(text: string, content: Entries, bad: Unreadable) {
  const bundle = v.object({ mediaType: v.literal(MEDIA_TYPE), ...content });
  return readJson(bundle, text, { bad, parse: shallowJson });
}

/** Bytes in base64, in the only form that encoders write. */
export const base64 = v.custom<string>((value) => typeof value === 'string' && isBase64(value), 'not base64');

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && Buffer.from(text, 'base64').toString('base64') === text;
}
