/** An object of a store as bytes that can be read by range. */
import { CurlewError } from '../core/errors.ts';
import type { Store, StoredObject, StorePlace } from './store.ts';

interface SourceReadOptions {
  readonly signal: AbortSignal;
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** The shape of the archive reader's range source, with what the store knows of the object. */
export interface StoreSource {
  /** For messages. */
  readonly name: string;
  readonly size: number;
  readonly read: (offset: number, length: number, options: SourceReadOptions) => AsyncIterable<Uint8Array>;
  readonly object: StoredObject;
  /** Of the store that holds it. */
  readonly place: StorePlace;
}

/** What sources need of a store. */
export type SourceStore = Pick<Store, 'address' | 'place' | 'head' | 'get'>;

/** Pins the object by its etag: a read after it has changed is `STORE_CONFLICT`. A missing object is `NOT_FOUND`. */
export async function openStoreSource(
  store: SourceStore,
  key: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<StoreSource> {
  const object = await store.head(key, { signal });
  if (object === undefined) throw new CurlewError('NOT_FOUND', `${store.address}: there is no ${key}`);
  return storeSource(store, object);
}

/** The same of an object that was looked at before. */
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
