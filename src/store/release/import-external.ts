/** Takes external add-ons into a store: packages first, then the registry that names them. */
import type { RangeSource } from '../../formats/archive/entry.ts';
import { openFileSource } from '../../formats/archive/read.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { currentRelease, findCatalogue } from '../catalogue.ts';
import { openStoreSource } from '../source.ts';
import type { Store, StoredObject } from '../store.ts';
import {
  externalFile,
  formatRegistry,
  offerProblem,
  parseRegistry,
  withRows,
  type AddonRegistry,
  type ExternalPackage,
  type OfferedVersion,
  type RegistryRow,
} from './external.ts';
import { listPackage } from './catalogue.ts';
import { writeSupportedVersions } from './finish.ts';
import { digestOfBody } from './object-digest.ts';
import { readAddonJson } from './reindex.ts';

/** A downloaded file; its digest was measured. */
export interface FetchedPackage {
  readonly path: string;
  readonly digest: Digest;
}

export interface ImportOptions {
  readonly store: Store;
  /** Downloads a version, and refuses bytes of another digest than the one it gives. */
  readonly fetch: (offer: OfferedVersion, options: { readonly signal: AbortSignal }) => Promise<FetchedPackage>;
  /** Packages at once. */
  readonly jobs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

interface ImportedVersion {
  readonly name: string;
  readonly version: string;
  readonly sha256: Digest;
  /** `released`: it was a prerelease. */
  readonly outcome: 'imported' | 'present' | 'restored' | 'released';
}

export interface ImportResult {
  readonly store: string;
  readonly versions: readonly ImportedVersion[];
}

/** Of an external package, when curlew can read it. */
type Found = Pick<ImportedVersion, 'outcome'> & {
  readonly sha256: Digest;
  readonly curlew: ExternalPackage | undefined;
};

const REGISTRY_LIMIT = 16 << 20;

/**
 * A version that stands in the registry is not fetched again; its object is compared with the registry, and put back when
 * it is gone. A version that says something else now is `STORE_CONFLICT`, told before anything is written; so is another
 * importer who was faster.
 */
export async function importExternal(offers: readonly OfferedVersion[], options: ImportOptions): Promise<ImportResult> {
  const { store, jobs, report, signal } = options;
  const key = storeKey.addonRegistry;
  const found = await store.read(key, { limit: REGISTRY_LIMIT, signal });
  const registry: AddonRegistry =
    found === undefined ? new Map() : parseRegistry(Buffer.from(found.data).toString(), `${store.address}/${key}`);
  const rowOf = ({ name, version }: OfferedVersion): RegistryRow | undefined =>
    registry.get(name)?.find((row) => row.version === version);
  requireUnchanged(offers, rowOf, store);
  const taken = await mapLimited(
    offers,
    async (offer, within) => {
      const step = { id: externalFile(offer), title: formatRef(offer) };
      const take = async (): Promise<Found> => takeOver(offer, rowOf(offer), { ...options, ...within });
      return reportStep(report, step, take, ({ outcome }) => outcome);
    },
    { width: jobs, signal },
  );
  const rows = offers.map((offer, at) => ({ name: offer.name, row: newRow(offer, taken[at], rowOf(offer)) }));
  const data = Buffer.from(formatRegistry(withRows(registry, rows)));
  if (found === undefined || Buffer.compare(found.data, data) !== 0) {
    const condition = found === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: found.object.etag };
    await store.put(key, data, { ...condition, signal });
  }
  await nameInCurrent(store, { signal });
  const versions = offers.flatMap(({ name, version }, at) => {
    const one = taken[at];
    return one === undefined ? [] : [{ name, version, sha256: one.sha256, outcome: one.outcome }];
  });
  return { store: store.address, versions };
}

/** The lists of versions of the current release name what it offers from now on. */
async function nameInCurrent(store: Store, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  const current = await currentRelease(store, { signal });
  const catalogue = current && (await findCatalogue(store, current.release, { signal }));
  if (catalogue === undefined) return;
  for (const key of [storeKey.supportedVersions(catalogue.release), storeKey.latestSupportedVersions]) {
    await writeSupportedVersions(store, key, catalogue, { signal });
  }
}

function requireUnchanged(
  offers: readonly OfferedVersion[],
  rowOf: (offer: OfferedVersion) => RegistryRow | undefined,
  store: Store,
): void {
  const problems = offers.flatMap((offer) => {
    const row = rowOf(offer);
    const problem = row === undefined ? undefined : offerProblem(row, offer);
    return problem === undefined ? [] : [`${formatRef(offer)} ${problem}`];
  });
  if (problems.length === 0) return;
  const more = problems.length > 5 ? `, and ${problems.length - 5} more` : '';
  throw new CurlewError('STORE_CONFLICT', `${store.address}: ${problems.slice(0, 5).join(', ')}${more}`, {
    hint: 'a version that was imported never changes; its publisher must raise the version',
  });
}

function newRow(offer: OfferedVersion, taken: Found | undefined, row: RegistryRow | undefined): RegistryRow {
  const curlew = taken?.curlew ?? row?.curlew;
  const known = curlew === undefined ? {} : { curlew };
  if (row !== undefined) return { ...row, ...known, isPrerelease: row.isPrerelease && offer.isPrerelease };
  return {
    ...known,
    version: offer.version,
    kurlVersionCompatibilityRange: offer.range,
    origin: redact(offer.url),
    isPrerelease: offer.isPrerelease,
    sha256Sum: taken?.sha256.slice('sha256:'.length) ?? '',
  };
}

async function takeOver(
  offer: OfferedVersion,
  row: RegistryRow | undefined,
  { store, fetch, signal }: ImportOptions,
): Promise<Found> {
  const key = storeKey.external(externalFile(offer));
  const there = await store.head(key, { signal });
  const locked = row === undefined ? undefined : (`sha256:${row.sha256Sum}` as const);
  if (there !== undefined && locked !== undefined) {
    requireDigest(store, key, await objectDigest(store, there, signal), locked);
    const outcome = row?.isPrerelease === true && !offer.isPrerelease ? 'released' : 'present';
    const read = async (): Promise<ExternalPackage | undefined> =>
      externalPackage(await openStoreSource(store, key, { signal }), offer, locked, signal);
    return { sha256: locked, outcome, curlew: row?.curlew ?? (await read()) };
  }
  const { path, digest } = await fetch({ ...offer, digest: locked ?? offer.digest }, { signal });
  await using source = await openFileSource(path);
  await requireGzip(source, offer, signal);
  const curlew = await externalPackage(source, offer, digest, signal);
  // Left by an importer that was stopped before the registry named it.
  if (there !== undefined) requireDigest(store, key, await objectDigest(store, there, signal), digest);
  else {
    const metadata = { sha256: digest, origin: redact(offer.url) };
    await store.put(key, source, { ifNoneMatch: '*', digest, metadata, signal });
  }
  return { sha256: digest, outcome: locked === undefined ? 'imported' : 'restored', curlew };
}

/** Undefined for a package that curlew did not make; one of another add-on or version is `PACKAGE_INVALID`. */
async function externalPackage(
  source: RangeSource,
  offer: OfferedVersion,
  sha256: Digest,
  signal: AbortSignal,
): Promise<ExternalPackage | undefined> {
  const read = await readAddonJson(source, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof CurlewError && (error.code === 'PACKAGE_INVALID' || error.code === 'UNSUPPORTED'))
      return undefined;
    throw error;
  });
  if (read === undefined) return undefined;
  const listed = listPackage(read.addon, { sha256, toc: read.toc, size: source.size });
  const { name, version, ...curlew } = listed;
  if (name === offer.name && version === offer.version) return curlew;
  throw new CurlewError(
    'PACKAGE_INVALID',
    `${formatRef(offer)}: ${redact(offer.url)} gave ${formatRef({ name, version })}`,
  );
}

async function requireGzip(
  source: Awaited<ReturnType<typeof openFileSource>>,
  offer: OfferedVersion,
  signal: AbortSignal,
): Promise<void> {
  const head: Uint8Array[] = [];
  for await (const chunk of source.read(0, Math.min(2, source.size), { signal })) head.push(Buffer.from(chunk));
  if (Buffer.concat(head).toString('hex') === '1f8b') return;
  throw new CurlewError('PACKAGE_INVALID', `${formatRef(offer)}: ${redact(offer.url)} gave no .tar.gz`);
}

/** As its metadata says; read and hashed when it has none. */
async function objectDigest(store: Store, object: StoredObject, signal: AbortSignal): Promise<Digest> {
  const noted = object.metadata['sha256'];
  return noted !== undefined && isDigest(noted) ? noted : digestOfBody(store, object, { signal });
}

function requireDigest(store: Store, key: string, found: Digest, wanted: Digest): void {
  if (found === wanted) return;
  throw new CurlewError('STORE_CONFLICT', `${store.address}: ${key} is there already, with other content`, {
    hint: 'a package that was imported never changes: find out who has replaced it',
  });
}
