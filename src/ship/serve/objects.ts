/** Objects of the store as contents. */
import { createHash } from 'node:crypto';
import type { Cancellable } from '../../core/cancellable.ts';
import { unless } from '../../core/errors.ts';
import { openStoreSource, type StoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import type { Content } from './content.ts';

/** Undefined if the object does not exist. */
export async function storedContent(store: Store, key: string, { signal }: Cancellable): Promise<Content | undefined> {
  const source = await unless(['NOT_FOUND'], openStoreSource(store, key, { signal }));
  return source && sourceContent(source);
}

/** The same for an open source. */
export function sourceContent({ object, size, read }: StoreSource): Content {
  const { key, etag } = object;
  const isArchive = key.endsWith('.tar.gz');
  const fileName = key.slice(key.lastIndexOf('/') + 1);
  return {
    size,
    etag: etagHeader(etag),
    type: isArchive ? 'application/gzip' : key.endsWith('.yaml') ? 'application/yaml' : 'application/json',
    fileName: isArchive ? fileName : undefined,
    cache: 'ask',
    read,
  };
}

/** A store's etag as a header value. Weak etags stay weak, and values that are not valid in a header become weak. */
function etagHeader(etag: string): string {
  if (/^(?:W\/)?"[\u0021\u0023-\u007e]{1,200}"$/.test(etag)) return etag;
  if (/^[\u0021\u0023-\u007e]{1,200}$/.test(etag) && !etag.startsWith('W/')) return `"${etag}"`;
  return `W/"${createHash('sha256').update(etag).digest('hex')}"`;
}
