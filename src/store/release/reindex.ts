/** The catalogue of a release made anew from its packages: for one that was damaged. */
import { findEntry, readFile, readIndex } from '../../formats/archive/read.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { CATALOGUE_LIMIT, formatCatalogue, isRelease, type Catalogue } from '../../core/catalogue.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { ADDON_JSON, ownerOf, packageFileName, prefixOf, storeKey } from '../../core/layout.ts';
import { packageDigest, parseAddonJson, type AddonJson } from '../../core/package.ts';
import { currentRelease, findCatalogue } from '../catalogue.ts';
import { openStoreSource } from '../source.ts';
import type { ListedObject, Store } from '../store.ts';
import { fileOf, listPackage, listPackages, makeCatalogue, type ListedPackage } from './catalogue.ts';
import { writeGenerated } from './finish.ts';
import { writeLatest } from './latest.ts';
import { digestOfBody } from './object-digest.ts';
import { parseSupportedVersions, type VersionOrders } from './version-order.ts';

export interface ReindexOptions {
  /** By default the current one. */
  readonly release: string | undefined;
  readonly dryRun: boolean;
  /** Packages at once. */
  readonly jobs: number;
  readonly signal: AbortSignal;
}

interface LostPackage {
  /** Key below the release. */
  readonly file: string;
  readonly why: string;
}

export interface ReindexResult {
  readonly store: string;
  readonly release: string;
  /** What was the matter with the catalogue: nothing, damaged, not there, or other packages than lie there. */
  readonly was: 'sound' | 'damaged' | 'missing' | 'different';
  readonly dryRun: boolean;
  readonly packages: number;
  /** Packages whose sha256 had to be computed from their bytes, because no metadata tells it. */
  readonly hashed: readonly string[];
  /** What could not be restored. */
  readonly lost: readonly LostPackage[];
  /** Where the order of versions, and so what `latest` means, comes from. */
  readonly order: 'the catalogue' | 'supported-versions-gen.json' | 'descending';
}

const DOCUMENT_LIMIT = 32 << 20;

/**
 * Reads each package's `addon.json` by two small ranges and writes the catalogue and the generated files if they differ.
 * Of the current release the unversioned copies are put right too. The packages themselves are never touched. A release without any readable package is `NOT_FOUND`.
 */
export async function reindex(store: Store, options: ReindexOptions): Promise<ReindexResult> {
  const { jobs, signal, dryRun } = options;
  const release = options.release ?? (await currentRelease(store, { signal }))?.release;
  if (release === undefined || !isRelease(release)) {
    throw new CurlewError('NOT_FOUND', `${store.address}: no release is current`, { hint: 'name one with --release' });
  }
  const before = await oldCatalogue(store, release, signal);
  const objects: ListedObject[] = [];
  for await (const object of store.list(`${release}/`, { signal })) {
    if (isPackageKey(object.key, release)) objects.push(object);
  }
  const read = await mapLimited(objects, async (object, context) => readPackage(store, object, context), {
    width: jobs,
    signal,
  });
  const found = read.flatMap((one) => ('listed' in one ? [one] : []));
  if (found.length === 0) {
    throw new CurlewError('NOT_FOUND', `${store.address}: ${release} has no package that can be read`);
  }
  const packages = found.map(({ listed }) => listed);
  const { order, orders } = await findOrder(store, release, before.catalogue, signal);
  const catalogue = makeCatalogue(release, packages, orders);
  const same = before.catalogue !== undefined && formatCatalogue(before.catalogue) === formatCatalogue(catalogue);
  if (!dryRun) await replace(store, catalogue, { same, etag: before.etag, jobs, signal });
  return {
    store: store.address,
    release,
    was: before.catalogue !== undefined && !same ? 'different' : before.was,
    dryRun,
    packages: packages.length,
    hashed: found.flatMap(({ listed, hashed }) => (hashed ? [fileOf(listed)] : [])),
    lost: [...read.flatMap((one) => ('lost' in one ? [one.lost] : [])), ...vanished(before.catalogue, read)],
    order,
  };
}

interface OldCatalogue {
  readonly was: 'sound' | 'damaged' | 'missing';
  readonly catalogue: Catalogue | undefined;
  readonly etag: string | undefined;
}

async function oldCatalogue(store: Store, release: string, signal: AbortSignal): Promise<OldCatalogue> {
  const etag = (await store.head(storeKey.catalogue(release), { signal }))?.etag;
  try {
    const catalogue = await findCatalogue(store, release, { signal });
    return { was: catalogue === undefined ? 'missing' : 'sound', catalogue, etag };
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    return { was: 'damaged', catalogue: undefined, etag };
  }
}

function isPackageKey(key: string, release: string): boolean {
  const file = key.slice(release.length + 1);
  return file.endsWith('.tar.gz') && !file.includes('/');
}

type ReadPackage = { readonly listed: ListedPackage; readonly hashed: boolean } | { readonly lost: LostPackage };

async function readPackage(
  store: Store,
  object: ListedObject,
  { signal }: { readonly signal: AbortSignal },
): Promise<ReadPackage> {
  const file = object.key.slice(object.key.indexOf('/') + 1);
  try {
    const source = await openStoreSource(store, object.key, { signal });
    const { addon, toc } = await readAddonJson(source, signal);
    const own = packageFileName(addon, addon.arch);
    if (own !== file) return { lost: { file, why: `its content is that of ${own}` } };
    const noted = source.object.metadata['sha256'];
    const known: Digest | undefined = noted !== undefined && isDigest(noted) ? noted : undefined;
    const sha256 = known ?? (await digestOfBody(store, source.object, { signal }));
    return { listed: listPackage(addon, { sha256, toc, size: source.size }), hashed: known === undefined };
  } catch (error) {
    const told = ['PACKAGE_INVALID', 'DIGEST_MISMATCH', 'UNSUPPORTED', 'NOT_FOUND'];
    if (!(error instanceof CurlewError) || !told.includes(error.code)) throw error;
    return { lost: { file, why: error.message } };
  }
}

/** The `addon.json`, which must fit the table of contents. */
/** What a package says of itself, and its table of contents; `PACKAGE_INVALID` for what is none. */
export async function readAddonJson(
  source: RangeSource,
  signal: AbortSignal,
): Promise<{ readonly addon: AddonJson; readonly toc: Digest }> {
  const bad = (what: string): CurlewError => new CurlewError('PACKAGE_INVALID', `${source.name}: ${what}`);
  const index = await readIndex(source, { signal });
  const owner = ownerOf(index.entries[0]?.path ?? '');
  const prefix = owner === undefined ? undefined : prefixOf(owner);
  const entry = prefix === undefined ? undefined : findEntry(index, prefix + ADDON_JSON);
  if (prefix === undefined || entry === undefined) throw bad('it is no package of one add-on');
  const text = Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
  const addon = parseAddonJson(text, `${source.name}: ${entry.path}`);
  if (prefixOf(addon) !== prefix || digestOfIndex(index, prefix) !== addon.digest) {
    throw bad('its addon.json is not that of its files');
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
  before: Catalogue | undefined,
  signal: AbortSignal,
): Promise<{ readonly order: ReindexResult['order']; readonly orders: VersionOrders }> {
  if (before !== undefined) {
    const orders = before.addons.map(({ name, versions }) => [name, versions.map(({ version }) => version)] as const);
    return { order: 'the catalogue', orders: new Map(orders) };
  }
  const generated = await store.read(storeKey.supportedVersions(release), { limit: CATALOGUE_LIMIT, signal });
  const orders = generated === undefined ? undefined : parseSupportedVersions(Buffer.from(generated.data).toString());
  if (orders === undefined) return { order: 'descending', orders: new Map() };
  return { order: 'supported-versions-gen.json', orders };
}

/** What the old catalogue names and the store does not have. */
function vanished(before: Catalogue | undefined, read: readonly ReadPackage[]): readonly LostPackage[] {
  if (before === undefined) return [];
  const there = new Set(read.map((one) => ('listed' in one ? fileOf(one.listed) : one.lost.file)));
  const gone = listPackages(before).filter((listed) => !there.has(fileOf(listed)));
  return gone.map((listed) => ({ file: fileOf(listed), why: 'it is not there' }));
}

interface Replacing {
  readonly same: boolean;
  readonly etag: string | undefined;
  readonly jobs: number;
  readonly signal: AbortSignal;
}

async function replace(store: Store, catalogue: Catalogue, { same, etag, jobs, signal }: Replacing): Promise<void> {
  if (!same) {
    const condition = etag === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: etag };
    const text = Buffer.from(formatCatalogue(catalogue));
    await store.put(storeKey.catalogue(catalogue.release), text, { ...condition, signal });
  }
  await writeGenerated(store, catalogue, { signal });
  const current = await currentRelease(store, { signal });
  if (current?.release === catalogue.release) await writeLatest(store, catalogue, { before: undefined, jobs, signal });
}
