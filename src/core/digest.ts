/** Digests, and the canonical JSON that is hashed. */
import type { Hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Bytes } from './bytes.ts';
import { CurlewError } from './errors.ts';

export type Digest = `sha256:${string}`;

const PATTERN = /^sha256:[0-9a-f]{64}$/;

/** True for a well-formed sha256 digest in lower-case hex; the only kind this tool accepts. */
export function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && PATTERN.test(value);
}

/** Checks a digest from outside; `from` names its source in the message. */
export function parseDigest(text: string, from: string): Digest {
  if (isDigest(text)) return text;
  throw new CurlewError('PACKAGE_INVALID', `${from}: not a sha256 digest: ${JSON.stringify(text.slice(0, 100))}`);
}

/** The 64 hex digits of a digest. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length);
}

/** Node's module is read on use: help and completion, which need none of it, would start later. */
function sha256(): Hash {
  return process.getBuiltinModule('node:crypto').createHash('sha256');
}

export function digestOf(data: Uint8Array | string): Digest {
  return `sha256:${sha256().update(data).digest('hex')}`;
}

/** RFC 8785 JSON: equal values have equal text, regardless of key order. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('canonicalJson: not a JSON value');
  return text;
}

/** Digest and size of a stream as it passes through. Read them after the last chunk. */
export interface Measurement {
  digest: Digest | undefined;
  size: number;
}

/** Passes chunks through and stores size and digest in `into` when the stream ends. */
export async function* measured(body: AsyncIterable<Uint8Array>, into: Measurement): Bytes {
  const hash = sha256();
  for await (const chunk of body) {
    hash.update(chunk);
    into.size += chunk.byteLength;
    yield chunk;
  }
  into.digest = `sha256:${hash.digest('hex')}`;
}
