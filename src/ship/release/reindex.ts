/** Rebuilds the catalog of a release from its packages. */
import type { Cancellable } from '../../core/cancellable.ts';
import { findEntry, readFile, readIndex } from '../../formats/archive/read.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { CATALOG_LIMIT, formatCatalog, isChannelName, isRelease, type Catalog } from '../../core/catalog.ts';
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { ADDON_JSON, ownerOf, packageFileName, prefixOf, storeKey } from '../../core/layout.ts';
import { packageDigest, parseAddonJson, type AddonJson } from '../../core/package.ts';
import { currentRelease, findCatalog } from '../store/read-catalog.ts';
import { compareText } from '../../core/ref.ts';
import { openStoreSource } from '../store/source.ts';
import type { ListedObject, Store } from '../store/store.ts';
import { fileOf, listPackage, listPackages, makeCatalog, type ListedPackage } from './make-catalog.ts';
import { publishedAs, writeGenerated } from './finish-release.ts';
import { writeUnversionedCopies } from './unversioned-copies.ts';
import { digestOfBody, notedDigest } from './object-digest.ts';
import { parseSupportedVersions, publishedOf, type VersionOrders } from './version-order.ts';

export interface ReindexOptions extends Cancellable {
  /** Undefined for the current one. */
  readonly release: string | undefined;
  readonly dryRun: boolean;
  /** Number of concurrent packages. */
  readonly jobs: number;
}

interface LostPackage {
  /** Key, relative to the release. */
  readonly file: string;
  readonly why: string;
}

export interface ReindexResult {
  readonly store: string;
  readonly release: string;
  /** State of the previous catalog. `different`: it did not match the packages. */
  readonly was: 'sound' | 'damaged' | 'missing' | 'different';
  readonly dryRun: boolean;
  readonly packages: number;
  /** Packages whose SHA-256 was computed from their bytes because their metadata does not contain it. */
  readonly hashed: readonly string[];
  /** Packages that could not be added. */
  readonly lost: readonly LostPackage[];
  /** Source of the version order, which defines `latest`. */
  readonly order: 'the catalogue' | 'supported-versions-gen.json' | 'descending';
}

const DOCUMENT_LIMIT = 32 << 20;

/**
 * Reads each package's `addon.json` with two small range requests and writes the catalog and the generated files if they
 * differ. For the current release, also updates the unversioned copies. Never changes packages. A release without a readable
 * package is `NOT_FOUND`.
 */
export async function reindex(store: Store, options: ReindexOptions): Promise<ReindexResult> {
  const { jobs, signal, dryRun } = options;
  const release = options.release ?? (await currentRelease(store, { signal }))?.release;
  if (release === undefined || !isRelease(release)) {
    throw new CurlewError('NOT_FOUND', `${store.address}: the store has no current release`, { hint: 'add --release' });
  }
  const before = await readExisting(store, release, signal);
  const listed: ListedObject[] = [];
  for await (const object of store.list(`${release}/`, { signal })) listed.push(object);
  const objects = listed.filter(({ key }) => isPackageKey(key, release));
  const read = await mapLimited(objects, async (object, context) => readPackage(store, object, context), {
    width: jobs,
    signal,
  });
  const readable = read.flatMap((one) => ('listed' in one ? [one] : []));
  if (readable.length === 0) {
    throw new CurlewError('NOT_FOUND', `${store.address}: ${release} has no readable package`);
  }
  const packages = readable.map((one) => one.listed);
  const { order, orders, published } = await findOrder(store, release, before.catalog, signal);
  const channels =
    before.catalog === undefined
      ? listed.flatMap(({ key }) => channelOfKey(key, release) ?? []).toSorted(compareText)
      : before.catalog.channels;
  const catalog = publishedAs(makeCatalog(release, packages, orders, channels), { published });
  const same = before.catalog !== undefined && formatCatalog(before.catalog) === formatCatalog(catalog);
  if (!dryRun) await replace(store, catalog, { same, etag: before.etag, jobs, signal });
  return {
    store: store.address,
    release,
    was: before.catalog !== undefined && !same ? 'different' : before.was,
    dryRun,
    packages: packages.length,
    hashed: readable.flatMap(({ listed, hashed }) => (hashed ? [fileOf(listed)] : [])),
    lost: [...read.flatMap((one) => ('lost' in one ? [one.lost] : [])), ...missingPackages(before.catalog, read)],
    order,
  };
}

interface ExistingCatalog {
  readonly was: 'sound' | 'damaged' | 'missing';
  readonly catalog: Catalog | undefined;
  readonly etag: string | undefined;
}

async function readExisting(store: Store, release: string, signal: AbortSignal): Promise<ExistingCatalog> {
  const etag = (await store.head(storeKey.catalog(release), { signal }))?.etag;
  try {
    const catalog = await findCatalog(store, release, { signal });
    return { was: catalog === undefined ? 'missing' : 'sound', catalog, etag };
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    return { was: 'damaged', catalog: undefined, etag };
  }
}

function isPackageKey(key: string, release: string): boolean {
  const file = key.slice(release.length + 1);
  return file.endsWith('.tar.gz') && !file.includes('/');
}

/** The name of the channel with this key. */
function channelOfKey(key: string, release: string): string | undefined {
  const name = key.slice(storeKey.channel(release, '').length - '.yaml'.length, -'.yaml'.length);
  return isChannelName(name) && key === storeKey.channel(release, name) ? name : undefined;
}

type ReadPackage = { readonly listed: ListedPackage; readonly hashed: boolean } | { readonly lost: LostPackage };

async function readPackage(store: Store, object: ListedObject, { signal }: Cancellable): Promise<ReadPackage> {
  const file = object.key.slice(object.key.indexOf('/') + 1);
  try {
    const source = await openStoreSource(store, object.key, { signal });
    const { addon, toc } = await readAddonJson(source, signal);
    const own = packageFileName(addon, addon.arch);
    if (own !== file) return { lost: { file, why: `it contains ${own}` } };
    const known = notedDigest(source.object);
    const sha256 = known ?? (await digestOfBody(store, source.object, { signal }));
    return { listed: listPackage(addon, { sha256, toc, size: source.size }), hashed: known === undefined };
  } catch (error) {
    const unreadable = ['PACKAGE_INVALID', 'DIGEST_MISMATCH', 'UNSUPPORTED', 'NOT_FOUND'];
    if (!(error instanceof CurlewError) || !unreadable.includes(error.code)) throw error;
    return { lost: { file, why: error.message } };
  }
}

/** A package's `addon.json`, checked against the table of contents, whose digest is `toc`. `PACKAGE_INVALID` for other files. */
export async function readAddonJson(
  source: RangeSource,
  signal: AbortSignal,
): Promise<{ readonly addon: AddonJson; readonly toc: Digest }> {
  const bad = errorAbout('PACKAGE_INVALID', source.name);
  const index = await readIndex(source, { signal });
  const owner = ownerOf(index.entries[0]?.path ?? '');
  const prefix = owner === undefined ? undefined : prefixOf(owner);
  const entry = prefix === undefined ? undefined : findEntry(index, prefix + ADDON_JSON);
  if (prefix === undefined || entry === undefined) throw bad('it is not a package of one add-on');
  const text = Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
  const addon = parseAddonJson(text, `${source.name}: ${entry.path}`);
  if (prefixOf(addon) !== prefix || digestOfIndex(index, prefix) !== addon.digest) {
    throw bad('its addon.json does not match its files');
  }
  return { addon, toc: index.tocDigest };
}

function digestOfIndex({ entries }: ArchiveIndex, prefix: string): Digest {
  return packageDigest(
    entries.map(({ path, mode, size, digest }) => {
      return { path: path.startsWith(prefix) ? path.slice(prefix.length) : `/${path}`, mode, size, digest };
    }),
  );
}

async function findOrder(
  store: Store,
  release: string,
  before: Catalog | undefined,
  signal: AbortSignal,
): Promise<Pick<ReindexResult, 'order'> & { readonly orders: VersionOrders; readonly published: string | undefined }> {
  if (before !== undefined) {
    const orders = before.addons.map(({ name, versions }) => [name, versions.map(({ version }) => version)] as const);
    return { order: 'the catalogue', orders: new Map(orders), published: before.published };
  }
  const generated = await store.read(storeKey.supportedVersions(release), { limit: CATALOG_LIMIT, signal });
  const text = generated === undefined ? '' : Buffer.from(generated.data).toString();
  const [orders, published] = [parseSupportedVersions(text), publishedOf(text)];
  if (orders === undefined) return { order: 'descending', orders: new Map(), published };
  return { order: 'supported-versions-gen.json', orders, published };
}

/** Packages in the old catalog that are missing in the store. */
function missingPackages(before: Catalog | undefined, read: readonly ReadPackage[]): readonly LostPackage[] {
  if (before === undefined) return [];
  const existing = new Set(read.map((one) => ('listed' in one ? fileOf(one.listed) : one.lost.file)));
  const missing = listPackages(before).filter((listed) => !existing.has(fileOf(listed)));
  return missing.map((listed) => ({ file: fileOf(listed), why: 'it is missing' }));
}

interface ReplaceOptions extends Cancellable {
  readonly same: boolean;
  readonly etag: string | undefined;
  readonly jobs: number;
}

async function replace(store: Store, catalog: Catalog, { same, etag, jobs, signal }: ReplaceOptions): Promise<void> {
  if (!same) {
    const condition = etag === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: etag };
    const text = Buffer.from(formatCatalog(catalog));
    await store.put(storeKey.catalog(catalog.release), text, { ...condition, signal });
  }
  await writeGenerated(store, catalog, { signal });
  const current = await currentRelease(store, { signal });
  if (current?.release === catalog.release)
    await writeUnversionedCopies(store, catalog, { before: undefined, jobs, signal });
}
