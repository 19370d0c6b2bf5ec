/**
 * Unversioned copies of packages and channels, for readers that do not know a release string. When all are written, the metadata of
 * `addons-gen.json` names their release. The next publisher then copies only packages that differ from that release. If the
 * metadata names another release, a publisher was interrupted or is still running, and every copy is checked.
 */
import { formatPublished } from '../../cluster/channel/published-channels.ts';
import { CATALOG_LIMIT, type Catalog } from '../../core/catalog.ts';
import { CurlewError, canceledOr } from '../../core/errors.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalog } from '../store/read-catalog.ts';
import type { Metadata, Store } from '../store/store.ts';
import { fileOf, formatAddons, listPackages, type ListedPackage, type ReleasePackages } from './make-catalog.ts';
import { writeIfDifferent, writeSupportedVersions } from './finish-release.ts';
import { packageMetadata } from './upload.ts';

/** A package's object in its release, as far as known. */
export interface KnownObject {
  readonly etag: string;
  readonly size: number;
  readonly metadata: Metadata;
}

export interface UnversionedCopiesOptions {
  /** The previously current release; undefined if none existed, or if every copy must be checked. */
  readonly before: ReleasePackages | undefined;
  /** By file name; may be incomplete. */
  readonly objects?: ReadonlyMap<string, KnownObject>;
  /** Number of concurrent packages. */
  readonly jobs: number;
  readonly signal: AbortSignal;
}

/** Updates the unversioned copies to this release, which is current, each atomically. Returns the number of written copies. */
export async function writeUnversionedCopies(
  store: Store,
  catalog: Catalog,
  options: UnversionedCopiesOptions,
): Promise<number> {
  return writeCopies(store, catalog, options).catch((error: unknown) => {
    const left = `${catalog.release} is published and current; the same command writes the copies that are missing next to the release folders`;
    throw canceledOr(error, options.signal, left);
  });
}

async function writeCopies(store: Store, catalog: Catalog, options: UnversionedCopiesOptions): Promise<number> {
  const { release } = catalog;
  const { before, jobs, signal } = options;
  const packages = listPackages(catalog);
  const mark = await store.read(storeKey.latestAddons, { limit: CATALOG_LIMIT, signal });
  const trusted =
    before !== undefined && before.release !== release && mark?.object.metadata['release'] === before.release;
  const settled = new Map(trusted ? before.packages.map((one) => [fileOf(one), one.entry.sha256] as const) : []);
  let written = 0;
  await eachLimited(
    packages.filter((listed) => settled.get(fileOf(listed)) !== listed.entry.sha256),
    async (listed, context) => {
      if (await copyUnversioned(store, listed, { ...options, release, check: !trusted, signal: context.signal }))
        written += 1;
    },
    { width: jobs, signal },
  );
  const now = await currentRelease(store, { signal });
  if (now !== undefined && now.release !== release) {
    // Another publisher was faster, and some of these copies may have overwritten its copies.
    const theirs = await findCatalog(store, now.release, { signal });
    return theirs === undefined
      ? written
      : written + (await writeUnversionedCopies(store, theirs, { before: undefined, jobs, signal }));
  }
  await writeSupportedVersions(store, storeKey.latestSupportedVersions, catalog, { signal });
  for (const name of catalog.channels ?? []) {
    await writeIfDifferent(store, storeKey.latestChannel(name), formatPublished(catalog, name), signal);
  }
  const addons = Buffer.from(formatAddons(catalog));
  if (mark?.object.metadata['release'] !== release || Buffer.compare(mark.data, addons) !== 0) {
    await store.put(storeKey.latestAddons, addons, { metadata: { release }, signal });
  }
  return written;
}

async function copyUnversioned(
  store: Store,
  listed: ListedPackage,
  { release, check, objects, signal }: UnversionedCopiesOptions & { readonly release: string; readonly check: boolean },
): Promise<boolean> {
  const file = fileOf(listed);
  const key = storeKey.latest(file);
  if (check) {
    const existing = await store.head(key, { signal });
    if (existing?.metadata['sha256'] === listed.entry.sha256 && existing.size === listed.entry.size) return false;
  }
  const from = storeKey.package(release, file);
  const source = objects?.get(file) ?? (await store.head(from, { signal }));
  try {
    await store.copy(from, key, {
      metadata: { ...packageMetadata(listed, undefined), ...source?.metadata },
      sourceIfMatch: source?.etag,
      sourceSize: source?.size,
      signal,
    });
  } catch (error) {
    // A prune that has removed the copy at once writes it again.
    const isCopied = error instanceof CurlewError && error.code === 'NOT_FOUND';
    if (!isCopied || (await store.head(from, { signal })) === undefined) throw error;
  }
  return true;
}
