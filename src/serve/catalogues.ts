/** A cache of a store's releases: checked again after a short time, and read again only if they have changed. */
import { isRelease, type Catalogue } from '../core/catalogue.ts';
import { digestOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';
import { currentRelease, findCatalogue, tryRegistry } from '../store/read-catalogue.ts';
import type { Store } from '../store/store.ts';
import { asServerError } from './failure.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface SeenCatalogue {
  /** With the external add-ons of the store, except if signatures are required: external add-ons are not signed. */
  readonly catalogue: Catalogue;
  /** ETags of the catalogue and the registry of external add-ons, or the digest of the signed catalogue. */
  readonly etag: string;
  /** The signed catalogue. */
  readonly text?: Uint8Array | undefined;
}

/**
 * Reads the catalogue of a release, undefined for the current one, and verifies its signature with trusted keys;
 * `SIGNATURE_INVALID` if that fails.
 */
export type VerifyRelease = (
  release: string | undefined,
) => Promise<{ readonly parsed: Catalogue; readonly catalogue: Uint8Array }>;

export interface CataloguesOptions extends WatchOptions {
  /** Adds the external add-ons of the store; called only if the store has some and signatures are not required. */
  readonly withExternal: (catalogue: Catalogue) => Promise<Catalogue>;
  /** Undefined: signatures are not required. */
  readonly verify: VerifyRelease | undefined;
}

export interface Catalogues {
  /** `NOT_FOUND` if the store has no release. */
  readonly current: () => Promise<string>;
  /** Undefined means the current release; a missing release is `NOT_FOUND`. */
  readonly of: (release: string | undefined) => Promise<SeenCatalogue>;
}

/** Number of cached catalogues: clients rarely request more than the current release and a few others. */
const MAX_CATALOGUES = 8;

export function createCatalogues(store: Store, options: CataloguesOptions): Catalogues {
  const { signal, verify, withExternal, freshMs, now } = options;
  if (verify !== undefined) return verifiedCatalogues(store, verify, options);
  const newest = createSingleFlightCache<Awaited<ReturnType<typeof currentRelease>>>({ freshMs, now });
  const watch = createWatch(store, options);
  const kept = createSingleFlightCache<SeenCatalogue>({ most: MAX_CATALOGUES });
  const current = async (): Promise<string> => {
    const found = await newest.get('', async () => currentRelease(store, { signal }));
    if (found !== undefined) return found.release;
    throw new CurlewError('NOT_FOUND', 'the store has no release');
  };
  return {
    current,
    of: async (requested) => {
      const release = requested ?? (await current());
      if (!isRelease(release)) throw missingError(release);
      const etag = await watch(storeKey.catalogue(release));
      if (etag === undefined) throw missingError(release);
      const registry = await tryRegistry(watch);
      const seen = registry === undefined ? etag : `${etag} ${registry}`;
      return kept.get(`${release} ${seen}`, async () => {
        const catalogue = await asServerError(async () => findCatalogue(store, release, { signal }));
        if (catalogue === undefined) throw missingError(release);
        return { catalogue: registry === undefined ? catalogue : await withExternal(catalogue), etag: seen };
      });
    },
  };
}

/** Verifies signatures again after a short time, because they expire. */
function verifiedCatalogues(store: Store, verify: VerifyRelease, options: WatchOptions): Catalogues {
  const watch = createWatch(store, options);
  const { freshMs, now } = options;
  const verified = createSingleFlightCache<SeenCatalogue>({ most: MAX_CATALOGUES, freshMs, now });
  const look = async (release: string | undefined): Promise<SeenCatalogue> => {
    const { parsed, catalogue } = await asServerError(async () => verify(release));
    return { catalogue: parsed, etag: digestOf(catalogue), text: catalogue };
  };
  const of: Catalogues['of'] = async (release) => {
    if (release !== undefined) {
      const exists = isRelease(release) && (await watch(storeKey.catalogue(release))) !== undefined;
      if (!exists) throw missingError(release);
    }
    return verified.get(release ?? '', async () => look(release));
  };
  return { of, current: async () => (await of(undefined)).catalogue.release };
}

function missingError(release: string): CurlewError {
  return new CurlewError('NOT_FOUND', `release ${JSON.stringify(release.slice(0, 100))} does not exist`);
}
