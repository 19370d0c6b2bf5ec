/** Completes a release in the order that keeps readers safe: catalog, its signature, `VERSION`, its signature. */
import type { Cancellable } from '../../core/cancellable.ts';
import { formatPublished } from '../../cluster/channel/published-channels.ts';
import { CATALOG_LIMIT, formatCatalog, type Catalog } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalog, type CurrentRelease } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { withStoredExternal } from './merged-catalog.ts';
import { signCatalog, signCurrent, type SignedCurrent, type Signer } from './sign-release.ts';
import { formatAddons, formatSupportedVersions } from './make-catalog.ts';

export interface FinishOptions extends Cancellable {
  /** The current release at the start. */
  readonly current: CurrentRelease | undefined;
  /** Undefined for an unsigned release. */
  readonly signer?: Signer | undefined;
  /** Content of `inputs.json`, next to the catalog. */
  readonly inputs: Uint8Array | undefined;
}

/** Makes a release the current one. All its packages must be in the store. Returns what was signed about it as the current release. */
export async function finishRelease(
  store: Store,
  made: Catalog,
  { current, signer, inputs, signal }: FinishOptions,
): Promise<SignedCurrent | undefined> {
  const { release } = made;
  const catalog = await writeCatalog(store, made, { signal });
  const texts = { release, catalog: Buffer.from(formatCatalog(catalog)), inputs };
  if (signer !== undefined) await signCatalog(store, texts, signer, { signal });
  await writeVersion(store, release, current, { signal });
  return signer === undefined ? undefined : signCurrent(store, texts, signer, { signal });
}

/**
 * Writes the catalog, then the two files for kURL's readers and the channels. Returns the catalog of the store: an equal one keeps its
 * time. An existing catalog with different content is `STORE_CONFLICT`. All packages must be in the store.
 */
async function writeCatalog(store: Store, made: Catalog, { signal }: Cancellable): Promise<Catalog> {
  const { release } = made;
  const key = storeKey.catalog(release);
  const textOf = (one: Catalog): Buffer => Buffer.from(formatCatalog(one));
  let catalog = made;
  try {
    await store.put(key, textOf(made), { ifNoneMatch: '*', signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    catalog = publishedAs(made, await findCatalog(store, release, { signal }));
    if (!(await hasContent(store, key, textOf(catalog), signal))) {
      throw new CurlewError('STORE_CONFLICT', `${store.address}: ${release} was published with different content`, {
        hint: 'a release never changes: use another release string',
        cause: error,
      });
    }
  }
  await writeGenerated(store, catalog, { signal });
  return catalog;
}

/** The catalog with the time of an existing one, which may have none. */
export function publishedAs(
  { published: _own, ...catalog }: Catalog,
  existing: { readonly published?: string | undefined } | undefined,
): Catalog {
  const published = existing?.published;
  return published === undefined ? catalog : { ...catalog, published };
}

/** Writes the two files for kURL's readers, and the channels, if they differ. */
export async function writeGenerated(store: Store, catalog: Catalog, { signal }: Cancellable): Promise<void> {
  const { release } = catalog;
  await writeSupportedVersions(store, storeKey.supportedVersions(release), catalog, { signal });
  await writeIfDifferent(store, storeKey.addons(release), formatAddons(catalog), signal);
  for (const name of catalog.channels ?? []) {
    await writeIfDifferent(store, storeKey.channel(release, name), formatPublished(catalog, name), signal);
  }
}

/** Writes the list of a release's versions, including external ones, if it differs. */
export async function writeSupportedVersions(
  store: Store,
  key: string,
  catalog: Catalog,
  { signal }: Cancellable,
): Promise<void> {
  const offered = await withStoredExternal(store, catalog, { signal });
  await writeIfDifferent(store, key, formatSupportedVersions(offered), signal);
}

export async function writeIfDifferent(store: Store, key: string, content: string, signal: AbortSignal): Promise<void> {
  const data = Buffer.from(content);
  if (!(await hasContent(store, key, data, signal))) await store.put(key, data, { signal });
}

/** True if the object with this key has this content. */
export async function hasContent(store: Store, key: string, data: Uint8Array, signal: AbortSignal): Promise<boolean> {
  const stored = await store.read(key, { limit: CATALOG_LIMIT, signal });
  return stored !== undefined && Buffer.compare(stored.data, data) === 0;
}

/** Makes the release current if `current` still is; a concurrent publisher causes `STORE_CONFLICT`. */
async function writeVersion(
  store: Store,
  release: string,
  current: CurrentRelease | undefined,
  { signal }: Cancellable,
): Promise<void> {
  if (current?.release === release) return;
  try {
    const condition = current === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: current.etag };
    await store.put(storeKey.version, Buffer.from(release), { ...condition, signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    const now = await currentRelease(store, { signal });
    if (now?.release === release) return;
    throw new CurlewError('STORE_CONFLICT', `${store.address}: another publisher has made ${now?.release} current`, {
      hint: 'run the same command with another release string to publish on top of it',
      cause: error,
    });
  }
}
