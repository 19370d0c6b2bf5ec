/** Detects changes of a store's objects, without a request to the store for each client request. */
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { Store } from '../store/store.ts';

export interface WatchOptions {
  /** Milliseconds for which an etag is cached. */
  readonly freshMs: number;
  readonly now: () => number;
  /** The server's signal: a client that disconnects must not stop work that others wait for. */
  readonly signal: AbortSignal;
}

/** The etag of the object at this key; undefined if it does not exist. */
export type SiteWatch = (key: string) => Promise<string | undefined>;

const MAX_KEYS = 10_000;

export function createWatch(store: Store, { signal, freshMs, now }: WatchOptions): SiteWatch {
  const etags = createSingleFlightCache<string | undefined>({ most: MAX_KEYS, freshMs, now });
  return async (key) => etags.get(key, async () => (await store.head(key, { signal }))?.etag);
}
