/** Imports external add-ons into a store: first the packages, then the registry that lists them. */
import type { Reporting } from '../../core/cancellable.ts';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { openFileSource } from '../../formats/archive/read.ts';
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { formatRef, type AddonVersion } from '../../core/ref.ts';
import { currentRelease, findCatalog } from '../store/read-catalog.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
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
  REGISTRY_LIMIT,
} from './external.ts';
import { listPackage } from './make-catalog.ts';
import { writeSupportedVersions } from './finish-release.ts';
import { digestOfObject } from './object-digest.ts';
import { readAddonJson } from './reindex.ts';

/** A downloaded file with its computed digest. */
export interface FetchedPackage {
  readonly path: string;
  readonly digest: Digest;
}

export interface ImportOptions extends Reporting {
  readonly store: Store;
  /** Downloads a version; rejects bytes that do not match the offer's digest. */
  readonly fetch: (offer: OfferedVersion, options: { readonly signal: AbortSignal }) => Promise<FetchedPackage>;
  /** Download and write nothing. */
  readonly dryRun: boolean;
  /** Number of concurrent packages. */
  readonly jobs: number;
}

interface ImportedVersion extends AddonVersion {
  /** Undefined in a dry run if only the package itself shows it. */
  readonly sha256: Digest | undefined;
  /** `released`: a prerelease became a release. */
  readonly outcome: 'imported' | 'present' | 'restored' | 'released';
}

export interface ImportResult {
  readonly store: string;
  readonly dryRun: boolean;
  readonly versions: readonly ImportedVersion[];
}

type TakenPackage = Pick<ImportedVersion, 'outcome' | 'sha256'> & {
  /** Undefined if curlew did not build the package, or in a dry run if it was not downloaded. */
  readonly curlew: ExternalPackage | undefined;
};

/**
 * Imports versions. A version in the registry is not fetched again; its object is compared with the registry, and restored
 * if it is missing. A version that has changed is `STORE_CONFLICT`, thrown before anything is written. A concurrent importer
 * also causes `STORE_CONFLICT`.
 */
export async function importExternal(offers: readonly OfferedVersion[], options: ImportOptions): Promise<ImportResult> {
  const { store, dryRun, jobs, report, signal } = options;
  const key = storeKey.addonRegistry;
  const stored = await store.read(key, { limit: REGISTRY_LIMIT, signal });
  const registry: AddonRegistry =
    stored === undefined ? new Map() : parseRegistry(Buffer.from(stored.data).toString(), `${store.address}/${key}`);
  const rowOf = ({ name, version }: OfferedVersion): RegistryRow | undefined =>
    registry.get(name)?.find((row) => row.version === version);
  requireUnchanged(offers, rowOf, store);
  const taken = await mapLimited(
    offers,
    async (offer, within) => {
      const step = { id: externalFile(offer), title: formatRef(offer) };
      const take = async (): Promise<TakenPackage> => takeOver(offer, rowOf(offer), { ...options, ...within });
      return reportStep(report, step, take, ({ outcome }) => outcome);
    },
    { width: jobs, signal },
  );
  const versions = offers.flatMap(({ name, version }, at) => {
    const one = taken[at];
    return one === undefined ? [] : [{ name, version, sha256: one.sha256, outcome: one.outcome }];
  });
  if (dryRun) return { store: store.address, dryRun, versions };
  const rows = offers.map((offer, at) => ({ name: offer.name, row: newRow(offer, taken[at], rowOf(offer)) }));
  const data = Buffer.from(formatRegistry(withRows(registry, rows)));
  if (stored === undefined || Buffer.compare(stored.data, data) !== 0) {
    const condition = stored === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: stored.object.etag };
    await store.put(key, data, { ...condition, signal });
  }
  await updateVersionLists(store, { signal });
  return { store: store.address, dryRun, versions };
}

/** Adds imported versions to the version lists of the current release. */
async function updateVersionLists(store: Store, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  const current = await currentRelease(store, { signal });
  const catalog = current && (await findCatalog(store, current.release, { signal }));
  if (catalog === undefined) return;
  for (const key of [storeKey.supportedVersions(catalog.release), storeKey.latestSupportedVersions]) {
    await writeSupportedVersions(store, key, catalog, { signal });
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
    hint: 'an imported version never changes: ask its publisher to publish a new version',
  });
}

function newRow(offer: OfferedVersion, taken: TakenPackage | undefined, row: RegistryRow | undefined): RegistryRow {
  const curlew = taken?.curlew ?? row?.curlew;
  const known = curlew === undefined ? {} : { curlew };
  if (row !== undefined) return { ...row, ...known, isPrerelease: row.isPrerelease && offer.isPrerelease };
  return {
    ...known,
    version: offer.version,
    kurlVersionCompatibilityRange: offer.range,
    origin: redact(offer.url),
    isPrerelease: offer.isPrerelease,
    sha256Sum: taken?.sha256?.slice('sha256:'.length) ?? '',
  };
}

async function takeOver(
  offer: OfferedVersion,
  row: RegistryRow | undefined,
  { store, fetch, dryRun, signal }: ImportOptions,
): Promise<TakenPackage> {
  const key = storeKey.external(externalFile(offer));
  const existing = await store.head(key, { signal });
  const locked = row === undefined ? undefined : (`sha256:${row.sha256Sum}` as const);
  if (existing !== undefined && locked !== undefined) {
    requireDigest(store, key, await digestOfObject(store, existing, { signal }), locked);
    const outcome = row?.isPrerelease === true && !offer.isPrerelease ? 'released' : 'present';
    const read = async (): Promise<ExternalPackage | undefined> =>
      externalPackage(await openStoreSource(store, key, { signal }), offer, locked, signal);
    return { sha256: locked, outcome, curlew: row?.curlew ?? (await read()) };
  }
  const outcome = locked === undefined ? 'imported' : 'restored';
  if (dryRun) return { sha256: locked ?? offer.digest, outcome, curlew: undefined };
  const { path, digest } = await fetch({ ...offer, digest: locked ?? offer.digest }, { signal });
  await using source = await openFileSource(path);
  await requireGzip(source, offer, signal);
  const curlew = await externalPackage(source, offer, digest, signal);
  // The object was left by an importer that stopped before it updated the registry.
  if (existing !== undefined) requireDigest(store, key, await digestOfObject(store, existing, { signal }), digest);
  else {
    const metadata = { sha256: digest, origin: redact(offer.url) };
    await store.put(key, source, { ifNoneMatch: '*', digest, metadata, signal });
  }
  return { sha256: digest, outcome, curlew };
}

/** Undefined for a package that curlew did not build; `PACKAGE_INVALID` for a package of another add-on or version. */
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
    `${formatRef(offer)}: ${redact(offer.url)} returned ${formatRef({ name, version })}`,
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
  throw new CurlewError('PACKAGE_INVALID', `${formatRef(offer)}: ${redact(offer.url)} did not return a .tar.gz`);
}

function requireDigest(store: Store, key: string, actual: Digest, expected: Digest): void {
  if (actual === expected) return;
  throw new CurlewError('STORE_CONFLICT', `${store.address}: ${key} already exists with different content`, {
    hint: 'an imported package never changes: find out who replaced it',
  });
}
