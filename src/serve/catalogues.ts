/** The releases of a store as a server sees them: looked at again after a moment, and read again only when they changed. */
import { isRelease, type Catalogue } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { currentRelease, findCatalogue } from '../store/catalogue.ts';
import type { Store } from '../store/store.ts';
import { ofStore } from './failure.ts';
import { createGlance, createShelf } from './shelf.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface SeenCatalogue {
  readonly catalogue: Catalogue;
  /** Of the catalogue's object. */
  readonly etag: string;
}

export interface Catalogues {
  /** `NOT_FOUND` when nothing was published. */
  readonly current: () => Promise<string>;
  /** Undefined means the current release; one that is not there is `NOT_FOUND`. */
  readonly of: (release: string | undefined) => Promise<SeenCatalogue>;
}

/** Catalogues that are kept: whoever is asked for more than the current release is asked for few. */
const MOST = 8;

export function createCatalogues(store: Store, options: WatchOptions): Catalogues {
  const { signal } = options;
  const glance = createGlance(async () => currentRelease(store, { signal }), options);
  const watch = createWatch(store, options);
  const kept = createShelf<SeenCatalogue>({ most: MOST, weigh: () => 1 });
  const current = async (): Promise<string> => {
    const found = await glance();
    if (found !== undefined) return found.release;
    throw new CurlewError('NOT_FOUND', 'no release was published here');
  };
  const absent = (release: string): CurlewError =>
    new CurlewError('NOT_FOUND', `there is no release ${JSON.stringify(release.slice(0, 100))}`);
  return {
    current,
    of: async (wanted) => {
      const release = wanted ?? (await current());
      if (!isRelease(release)) throw absent(release);
      const etag = await watch(storeKey.catalogue(release));
      if (etag === undefined) throw absent(release);
      return kept.take(`${release} ${etag}`, async () => {
        const catalogue = await ofStore(async () => findCatalogue(store, release, { signal }));
        if (catalogue === undefined) throw absent(release);
        return { catalogue, etag };
      });
    },
  };
}
