/** The current release of a store, and the catalog of a release. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CATALOG_LIMIT, isRelease, parseCatalog, type Catalog } from '../../core/catalog.ts';
import { CurlewError, requireRefusal, unless } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { nearest } from '../../core/nearest.ts';
import { compareVersions } from '../../core/ref.ts';
import type { Store } from './store.ts';
import { archiveHint, isArchiveName, isWebAddress, writingHint } from './web.ts';

/** What is done where a store has no release: nothing is published through a web server. `otherwise`: for a store that can be written. */
export function withoutReleaseHint(address: string, otherwise: string): string {
  if (!isWebAddress(address)) return otherwise;
  return isArchiveName(address)
    ? archiveHint(address)
    : 'check the address: it is that of the folder in which a web server has the file VERSION of a store, or URL/dist of curlew serve';
}

const VERSION_LIMIT = 1024;

export interface CurrentRelease {
  readonly release: string;
  /** ETag of `VERSION`, the condition for replacing it. */
  readonly etag: string;
}

/** The release that `VERSION` names; undefined in a store without releases. */
export async function currentRelease(store: Store, { signal }: Cancellable): Promise<CurrentRelease | undefined> {
  const stored = await store.read(storeKey.version, { limit: VERSION_LIMIT, signal });
  if (stored === undefined) return undefined;
  const release = Buffer.from(stored.data).toString().trim();
  if (!isRelease(release)) {
    throw new CurlewError('PACKAGE_INVALID', `${store.address}: VERSION does not contain a release string`, {
      hint: withoutReleaseHint(
        store.address,
        'write the name of a published release into it; to read a release without it, use --release',
      ),
    });
  }
  return { release, etag: stored.object.etag };
}

/** The catalog of a release, or undefined when the release has none. */
export async function findCatalog(
  store: Store,
  release: string,
  { signal }: Cancellable,
): Promise<Catalog | undefined> {
  const key = storeKey.catalog(release);
  try {
    const stored = await store.read(key, { limit: CATALOG_LIMIT, signal });
    if (stored === undefined) return undefined;
    const catalog = parseCatalog(Buffer.from(stored.data).toString(), `${store.address}/${key}`);
    if (catalog.release === release) return catalog;
    throw new CurlewError('PACKAGE_INVALID', `${store.address}/${key}: this is the catalog of ${catalog.release}`);
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    throw new CurlewError('PACKAGE_INVALID', error.message, {
      hint: writingHint(
        store.address,
        (to) => `rebuild it from the packages, with curlew reindex ${to} --release ${release}`,
      ),
      cause: error.cause,
    });
  }
}

/** When a release first appeared; undefined if its catalog does not say it, is damaged or does not exist. */
export async function publishedAt(store: Store, release: string, { signal }: Cancellable): Promise<Date | undefined> {
  const { published } = (await unless(['PACKAGE_INVALID'], findCatalog(store, release, { signal }))) ?? {};
  return published === undefined ? undefined : new Date(published);
}

/** The catalog of a release, by default of the current one; `NOT_FOUND` when it does not exist. */
export async function readCatalog(
  store: Store,
  { release, signal }: { readonly release: string | undefined; readonly signal: AbortSignal },
): Promise<Catalog> {
  const requested = release ?? (await currentRelease(store, { signal }))?.release;
  if (requested === undefined) {
    throw new CurlewError('NOT_FOUND', `${store.address}: the store has no release`, {
      hint: withoutReleaseHint(
        store.address,
        `check the address, or create a release with curlew publish --to ${store.address}`,
      ),
    });
  }
  const catalog = isRelease(requested) ? await findCatalog(store, requested, { signal }) : undefined;
  if (catalog !== undefined) return catalog;
  throw await missingRelease(store, requested, { signal });
}

/** Number of releases that a message lists. */
const MAX_LISTED = 8;
/** Number of keys to list when collecting releases for a hint: a hint is not worth minutes. */
const SCAN_LIMIT = 20_000;

/** The `NOT_FOUND` error for a release that a store does not have; lists the existing ones, newest first. */
export async function missingRelease(store: Store, requested: string, { signal }: Cancellable): Promise<CurlewError> {
  // Web servers cannot list, and some credentials do not allow it. The message then has no list.
  const existing = await listReleases(store, signal).catch((error: unknown) => {
    requireRefusal(error, signal);
    return [];
  });
  const near = nearest(requested, existing);
  const more = existing.length > MAX_LISTED ? `, and ${existing.length - MAX_LISTED} more` : '';
  const hints = [
    ...(near === undefined ? [] : [`did you mean ${near}?`]),
    ...(existing.length === 0 ? [] : [`existing releases: ${existing.slice(0, MAX_LISTED).join(', ')}${more}`]),
  ];
  return new CurlewError(
    'NOT_FOUND',
    `${store.address}: release ${JSON.stringify(requested.slice(0, 100))} does not exist`,
    hints.length === 0 ? {} : { hint: hints.join(' ') },
  );
}

/** Releases with a catalog, newest first. */
export async function listReleases(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  const releases: { readonly release: string; readonly time: number }[] = [];
  let budget = SCAN_LIMIT;
  for await (const { key, modified } of store.list('', { signal })) {
    const [release = ''] = key.split('/', 1);
    if (isRelease(release) && key === storeKey.catalog(release))
      releases.push({ release, time: modified?.getTime() ?? 0 });
    budget -= 1;
    if (budget === 0) break;
  }
  return releases
    .toSorted((a, b) => b.time - a.time || compareVersions(b.release, a.release))
    .map(({ release }) => release);
}

/**
 * Calls `read` with the key of the registry of external add-ons. Without permission to list, an S3 store answers `AUTH_FAILED`
 * for a missing object: that also gives undefined.
 */
export async function tryRegistry<Found>(
  read: (key: string) => Promise<Found | undefined>,
): Promise<Found | undefined> {
  return unless(['AUTH_FAILED'], read(storeKey.addonRegistry));
}
