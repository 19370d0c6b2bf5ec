/** What a store offers: its current release, and the catalogue of a release. */
import { CATALOGUE_LIMIT, isRelease, parseCatalogue, type Catalogue } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import type { Store } from './store.ts';

const VERSION_LIMIT = 1024;

export interface CurrentRelease {
  readonly release: string;
  /** Of `VERSION`, for replacing it. */
  readonly etag: string;
}

/** What `VERSION` says; undefined in a store that nothing was published to. */
export async function currentRelease(
  store: Store,
  { signal }: { readonly signal: AbortSignal },
): Promise<CurrentRelease | undefined> {
  const found = await store.read(storeKey.version, { limit: VERSION_LIMIT, signal });
  if (found === undefined) return undefined;
  const release = Buffer.from(found.data).toString().trim();
  if (!isRelease(release)) {
    throw new CurlewError('PACKAGE_INVALID', `${store.address}: VERSION holds no release string`, {
      hint: 'write the name of a published release into it; for reading, --release names one as well',
    });
  }
  return { release, etag: found.object.etag };
}

/** The catalogue of a release, or undefined when the release has none. */
export async function findCatalogue(
  store: Store,
  release: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<Catalogue | undefined> {
  const key = storeKey.catalogue(release);
  try {
    const found = await store.read(key, { limit: CATALOGUE_LIMIT, signal });
    if (found === undefined) return undefined;
    const catalogue = parseCatalogue(Buffer.from(found.data).toString(), `${store.address}/${key}`);
    if (catalogue.release === release) return catalogue;
    throw new CurlewError('PACKAGE_INVALID', `${store.address}/${key}: it is the catalogue of ${catalogue.release}`);
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    throw new CurlewError('PACKAGE_INVALID', error.message, {
      hint: `curlew reindex ${store.address} --release ${release} makes it anew from the packages`,
      cause: error.cause,
    });
  }
}

/** The catalogue of a release, by default of the current one; `NOT_FOUND` when there is none. */
export async function readCatalogue(
  store: Store,
  { release, signal }: { readonly release: string | undefined; readonly signal: AbortSignal },
): Promise<Catalogue> {
  const wanted = release ?? (await currentRelease(store, { signal }))?.release;
  if (wanted === undefined) {
    throw new CurlewError('NOT_FOUND', `${store.address}: no release was published here`, {
      hint: 'curlew publish --to makes one',
    });
  }
  const found = isRelease(wanted) ? await findCatalogue(store, wanted, { signal }) : undefined;
  if (found !== undefined) return found;
  throw new CurlewError('NOT_FOUND', `${store.address}: there is no release ${JSON.stringify(wanted.slice(0, 100))}`);
}

/**
 * Asks a store for its registry of external add-ons, by key. A store that nobody may list answers `AUTH_FAILED` for what is not
 * there: that is undefined, too.
 */
export async function ofRegistry<Found>(ask: (key: string) => Promise<Found | undefined>): Promise<Found | undefined> {
  try {
    return await ask(storeKey.addonRegistry);
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'AUTH_FAILED') return undefined;
    throw error;
  }
}
