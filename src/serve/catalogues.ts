/** The releases of a store as a server sees them: looked at again after a moment, and read again only when they changed. */
import { isRelease, type Catalogue } from '../core/catalogue.ts';
import { digestOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';
import { currentRelease, findCatalogue, tryRegistry } from '../store/catalogue.ts';
import type { Store } from '../store/store.ts';
import { ofStore } from './failure.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface SeenCatalogue {
  /** With the external add-ons of the store, unless it was signed: nobody signs those. */
  readonly catalogue: Catalogue;
  /** Of the catalogue's object and the registry of external add-ons, or the digest of what was signed. */
  readonly etag: string;
  /** What was signed. */
  readonly text?: Uint8Array | undefined;
}

/**
 * The catalogue of a release, undefined for the current one, with a signature by somebody who is trusted; without one it is
 * `SIGNATURE_INVALID`.
 */
export type ProveRelease = (
  release: string | undefined,
) => Promise<{ readonly parsed: Catalogue; readonly catalogue: Uint8Array }>;

export interface CataloguesOptions extends WatchOptions {
  /** The catalogue with the external add-ons of the store; not asked where there are none, nor for what was signed. */
  readonly withExternal: (catalogue: Catalogue) => Promise<Catalogue>;
  /** Undefined: nobody asks for signatures, and the store is believed. */
  readonly prove: ProveRelease | undefined;
}

export interface Catalogues {
  /** `NOT_FOUND` when nothing was published. */
  readonly current: () => Promise<string>;
  /** Undefined means the current release; one that is not there is `NOT_FOUND`. */
  readonly of: (release: string | undefined) => Promise<SeenCatalogue>;
}

/** Catalogues that are kept: whoever is asked for more than the current release is asked for few. */
const MOST = 8;

export function createCatalogues(store: Store, options: CataloguesOptions): Catalogues {
  const { signal, prove, withExternal, freshMs, now } = options;
  if (prove !== undefined) return provedCatalogues(store, prove, options);
  const newest = createSingleFlightCache<Awaited<ReturnType<typeof currentRelease>>>({ freshMs, now });
  const watch = createWatch(store, options);
  const kept = createSingleFlightCache<SeenCatalogue>({ most: MOST });
  const current = async (): Promise<string> => {
    const found = await newest.get('', async () => currentRelease(store, { signal }));
    if (found !== undefined) return found.release;
    throw new CurlewError('NOT_FOUND', 'no release was published here');
  };
  return {
    current,
    of: async (wanted) => {
      const release = wanted ?? (await current());
      if (!isRelease(release)) throw absent(release);
      const etag = await watch(storeKey.catalogue(release));
      if (etag === undefined) throw absent(release);
      const registry = await tryRegistry(watch);
      const seen = registry === undefined ? etag : `${etag} ${registry}`;
      return kept.get(`${release} ${seen}`, async () => {
        const catalogue = await ofStore(async () => findCatalogue(store, release, { signal }));
        if (catalogue === undefined) throw absent(release);
        return { catalogue: registry === undefined ? catalogue : await withExternal(catalogue), etag: seen };
      });
    },
  };
}

/** Proved again after a moment: what was signed for a time is over at its end, whatever lies in the store. */
function provedCatalogues(store: Store, prove: ProveRelease, options: WatchOptions): Catalogues {
  const watch = createWatch(store, options);
  const { freshMs, now } = options;
  const proved = createSingleFlightCache<SeenCatalogue>({ most: MOST, freshMs, now });
  const look = async (release: string | undefined): Promise<SeenCatalogue> => {
    const { parsed, catalogue } = await ofStore(async () => prove(release));
    return { catalogue: parsed, etag: digestOf(catalogue), text: catalogue };
  };
  const of: Catalogues['of'] = async (release) => {
    if (release !== undefined) {
      const isThere = isRelease(release) && (await watch(storeKey.catalogue(release))) !== undefined;
      if (!isThere) throw absent(release);
    }
    return proved.get(release ?? '', async () => look(release));
  };
  return { of, current: async () => (await of(undefined)).catalogue.release };
}

function absent(release: string): CurlewError {
  return new CurlewError('NOT_FOUND', `there is no release ${JSON.stringify(release.slice(0, 100))}`);
}
