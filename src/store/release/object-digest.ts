/** The digest of an object's bytes, read from the store. */
import { createHash } from 'node:crypto';
import type { Digest } from '../../core/digest.ts';
import type { ListedObject, Store } from '../store.ts';

/** Reads the whole object. An object that changes meanwhile is `STORE_CONFLICT`. */
export async function digestOfBody(
  store: Store,
  { key, etag }: ListedObject,
  { signal }: { readonly signal: AbortSignal },
): Promise<Digest> {
  const hash = createHash('sha256');
  const { body } = await store.get(key, { ifMatch: etag, signal });
  for await (const chunk of body) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}
