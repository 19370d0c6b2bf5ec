/** An object of a store as a source that can be read by range. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Store, StoredObject, StorePlace } from './store.ts';

interface SourceReadOptions extends Cancellable {
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** Compatible with the archive reader's range source; includes the store's object. */
export interface StoreSource {
  /** For messages. */
  readonly name: string;
  readonly size: number;
  readonly read: (offset: number, length: number, options: SourceReadOptions) => AsyncIterable<Uint8Array>;
  readonly object: StoredObject;
  /** Place of its store. */
  readonly place: StorePlace;
}

/** The part of a store that sources use. */
export type SourceStore = Pick<Store, 'address' | 'place' | 'head' | 'get'>;

/** Pins the object by its etag: reading a changed object is `STORE_CONFLICT`. A missing object is `NOT_FOUND`. */
export async function openStoreSource(store: SourceStore, key: string, { signal }: Cancellable): Promise<StoreSource> {
  const object = await store.head(key, { signal });
  if (object === undefined) {
    throw new CurlewError('NOT_FOUND', `${store.address}/${key} does not exist`, { hint: 'check the path or address' });
  }
  return storeSource(store, object);
}

/** The same for an object that is already known. */
export function storeSource(store: SourceStore, object: StoredObject): StoreSource {
  return {
    name: `${store.address}/${object.key}`,
    size: object.size,
    object,
    place: store.place,
    async *read(offset, length, options) {
      const { body } = await store.get(object.key, {
        range: { offset, length },
        ifMatch: object.etag,
        signal: options.signal,
        allocate: options.allocate,
      });
      yield* body;
    },
  };
}
