/** Whether objects of a store are still what they were, without asking for each request. */
import type { Store } from '../store/store.ts';
import { createGlance, createShelf } from './shelf.ts';

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

export function createWatch(store: Store, options: WatchOptions): Watch {
  const { signal } = options;
  const glances = createShelf<Watch>({ most: MOST_KEYS, weigh: () => 1 });
  return async (key) => {
    const look = async (): Promise<string | undefined> => (await store.head(key, { signal }))?.etag;
    const glance = await glances.take(key, async () => createGlance(look, options));
    return glance(key);
  };
}
