/** Whether objects of a store are still what they were, without asking for each request. */
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';
import type { Store } from '../store/store.ts';

export interface WatchOptions {
  /** How long the store is believed not to have changed. */
  readonly freshMs: number;
  readonly now: () => number;
  /** Of the server: one client's leaving stops nothing that others wait for. */
  readonly signal: AbortSignal;
}

/** The etag of the object at this key; undefined when there is none. */
export type Watch = (key: string) => Promise<string | undefined>;

const MOST_KEYS = 10_000;

export function createWatch(store: Store, { signal, freshMs, now }: WatchOptions): Watch {
  const etags = createSingleFlightCache<string | undefined>({ most: MOST_KEYS, freshMs, now });
  return async (key) => etags.get(key, async () => (await store.head(key, { signal }))?.etag);
}
