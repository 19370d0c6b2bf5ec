/** A cache of a store's releases: checked again after a short time, and read again only if they have changed. */
import { isRelease, type Catalog } from '../../core/catalog.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { currentRelease, findCatalog, tryRegistry } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { asServerError } from './failure.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface SeenCatalog {
  /** With the external add-ons of the store, except if signatures are required: external add-ons are not signed. */
  readonly catalog: Catalog;
  /** ETags of the catalog and the registry of external add-ons, or the digest of the signed catalog. */
  readonly etag: string;
  /** The signed catalog. */
  readonly text?: Uint8Array | undefined;
}

/**
 * Reads the catalog of a release, undefined for the current one, and verifies its signature with trusted keys;
 * `SIGNATURE_INVALID` if that fails.
 */
export type VerifyRelease = (
  release: string | undefined,
) => Promise<{ readonly parsed: Catalog; readonly catalog: Uint8Array }>;

export interface CatalogsOptions extends WatchOptions {
  /** Adds the external add-ons of the store; called only if the store has some and signatures are not required. */
  readonly withExternal: (catalog: Catalog) => Promise<Catalog>;
  /** Undefined: signatures are not required. */
  readonly verify: VerifyRelease | undefined;
}

export interface Catalogs {
  /** `NOT_FOUND` if the store has no release. */
  readonly current: () => Promise<string>;
  /** Undefined means the current release; a missing release is `NOT_FOUND`. */
  readonly of: (release: string | undefined) => Promise<SeenCatalog>;
}

/** Number of cached catalogs: clients rarely request more than the current release and a few others. */
const MAX_CATALOGS = 8;

export function createCatalogs(store: Store, options: CatalogsOptions): Catalogs {
  const { signal, verify, withExternal, freshMs, now } = options;
  if (verify !== undefined) return verifiedCatalogs(store, verify, options);
  const newest = createSingleFlightCache<Awaited<ReturnType<typeof currentRelease>>>({ freshMs, now });
  const watch = createWatch(store, options);
  const cache = createSingleFlightCache<SeenCatalog>({ most: MAX_CATALOGS });
  const current = async (): Promise<string> => {
    const latest = await newest.get('', async () => currentRelease(store, { signal }));
    if (latest !== undefined) return latest.release;
    throw new CurlewError('NOT_FOUND', 'the store has no release');
  };
  return {
    current,
    of: async (requested) => {
      const release = requested ?? (await current());
      if (!isRelease(release)) throw missingError(release);
      const etag = await watch(storeKey.catalog(release));
      if (etag === undefined) throw missingError(release);
      const registry = await tryRegistry(watch);
      const seen = registry === undefined ? etag : `${etag} ${registry}`;
      return cache.get(`${release} ${seen}`, async () => {
        const catalog = await asServerError(async () => findCatalog(store, release, { signal }));
        if (catalog === undefined) throw missingError(release);
        return { catalog: registry === undefined ? catalog : await withExternal(catalog), etag: seen };
      });
    },
  };
}

/** Verifies signatures again after a short time, because they expire. */
function verifiedCatalogs(store: Store, verify: VerifyRelease, options: WatchOptions): Catalogs {
  const watch = createWatch(store, options);
  const { freshMs, now } = options;
  const verified = createSingleFlightCache<SeenCatalog>({ most: MAX_CATALOGS, freshMs, now });
  const look = async (release: string | undefined): Promise<SeenCatalog> => {
    const { parsed, catalog } = await asServerError(async () => verify(release));
    return { catalog: parsed, etag: digestOf(catalog), text: catalog };
  };
  const of: Catalogs['of'] = async (release) => {
    if (release !== undefined) {
      const exists = isRelease(release) && (await watch(storeKey.catalog(release))) !== undefined;
      if (!exists) throw missingError(release);
    }
    return verified.get(release ?? '', async () => look(release));
  };
  return { of, current: async () => (await of(undefined)).catalog.release };
}

function missingError(release: string): CurlewError {
  return new CurlewError('NOT_FOUND', `release ${JSON.stringify(release.slice(0, 100))} does not exist`);
}
