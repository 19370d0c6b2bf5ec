/** What a store offers: its current release, and the catalogue of a release. */
import { CATALOGUE_LIMIT, isRelease, parseCatalogue, type Catalogue } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { nearest } from '../core/nearest.ts';
import { compareVersions } from '../core/ref.ts';
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
      hint: `check the address; curlew publish --to ${store.address} makes one`,
    });
  }
  const found = isRelease(wanted) ? await findCatalogue(store, wanted, { signal }) : undefined;
  if (found !== undefined) return found;
  throw await missingRelease(store, wanted, { signal });
}

/** Releases that a message names; more are counted. */
const NAMED = 8;
/** Keys of a store that are looked at for them: a hint is worth no minutes. */
const LOOKED_AT = 20_000;

/** The `NOT_FOUND` for a release that a store does not have, with those that it has, the newest first. */
export async function missingRelease(
  store: Store,
  wanted: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<CurlewError> {
  // Web servers list nothing, and some credentials may not: the message does without then.
  const there = await listReleases(store, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof CurlewError) return [];
    throw error;
  });
  const near = nearest(wanted, there);
  const more = there.length > NAMED ? `, and ${there.length - NAMED} more` : '';
  const hints = [
    ...(near === undefined ? [] : [`did you mean ${near}?`]),
    ...(there.length === 0 ? [] : [`there are: ${there.slice(0, NAMED).join(', ')}${more}`]),
  ];
  return new CurlewError(
    'NOT_FOUND',
    `${store.address}: there is no release ${JSON.stringify(wanted.slice(0, 100))}`,
    hints.length === 0 ? {} : { hint: hints.join(' ') },
  );
}

/** Those with a catalogue, the newest first. */
async function listReleases(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  const found: { readonly release: string; readonly time: number }[] = [];
  let left = LOOKED_AT;
  for await (const { key, modified } of store.list('', { signal })) {
    const [release = ''] = key.split('/', 1);
    if (isRelease(release) && key === storeKey.catalogue(release))
      found.push({ release, time: modified?.getTime() ?? 0 });
    left -= 1;
    if (left === 0) break;
  }
  return found
    .toSorted((a, b) => b.time - a.time || compareVersions(b.release, a.release))
    .map(({ release }) => release);
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
