/** The SHA-256 of an object, from its metadata or computed from its bytes. */
import { createHash } from 'node:crypto';
import type { Cancellable } from '../../core/cancellable.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import type { ListedObject, Store, StoredObject } from '../store/store.ts';

/** The digest in the object's metadata; undefined if missing. */
export function notedDigest({ metadata }: StoredObject): Digest | undefined {
  const noted = metadata['sha256'];
  return noted !== undefined && isDigest(noted) ? noted : undefined;
}

/** The digest in the object's metadata, otherwise computed from its bytes. */
export async function digestOfObject(store: Store, object: StoredObject, options: Cancellable): Promise<Digest> {
  return notedDigest(object) ?? digestOfBody(store, object, options);
}

/** Reads the whole object. An object that changes meanwhile is `STORE_CONFLICT`. */
export async function digestOfBody(
  store: Store,
  { key, etag }: ListedObject,
  { signal }: Cancellable,
): Promise<Digest> {
  const hash = createHash('sha256');
  const { body } = await store.get(key, { ifMatch: etag, signal });
  for await (const chunk of body) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}
