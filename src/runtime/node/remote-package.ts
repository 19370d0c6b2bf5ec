/** A package that is not on this machine: its contents are read by range, its bytes are brought by the fetch phase. */
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openFileSource, readIndex } from '../../formats/archive/read.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { ProgressEvent, Report } from '../../core/events.ts';
import { nodePath } from '../../core/layout.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { tryPlaces, type FetchPlace } from '../../ship/store/places.ts';
import { openStoreSource } from '../../ship/store/source.ts';
import { pathsBeside } from '../../ship/transfer/partial-file.ts';
import { transfer } from '../../ship/transfer/pull.ts';
import type { PlacedPackage } from './placed-package.ts';
import { archivePackages, type SourcePackage } from './source.ts';

interface PublishedFile {
  readonly digest: Digest;
  readonly sha256: Digest;
  /** Digest of the table of contents; undefined in catalogs that do not have it. */
  readonly toc?: Digest | undefined;
  readonly size: number;
}

export interface RemoteFile {
  /** For messages: `flannel-0.28.7`. */
  readonly name: string;
  /** From a catalog; undefined for a package that is in none. */
  readonly published: PublishedFile | undefined;
  /** Places in the order in which they are tried; never empty. */
  readonly places: readonly FetchPlace[];
}

interface OpenOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

const REPUBLISH = 'publish the release again, or specify a mirror with another --from';

/**
 * Reads the contents of a package at the first place that has the right one. Its bytes are fetched by `fetch`, which must be
 * called before `extract`.
 */
export async function openRemotePackage(file: RemoteFile, options: OpenOptions): Promise<SourcePackage> {
  return tryPlaces(file.places, async (place) => openAt(file, place, options), options);
}

async function openAt(file: RemoteFile, { store, key }: FetchPlace, options: OpenOptions): Promise<SourcePackage> {
  const { published } = file;
  const source = await openStoreSource(store, key, options);
  if (published !== undefined && source.size !== published.size) {
    throw new CurlewError('DIGEST_MISMATCH', `${source.name}: has ${source.size} bytes, not ${published.size}`, {
      hint: REPUBLISH,
    });
  }
  const index = await readIndex(source, options);
  requireContents(source, index, published?.toc);
  const [first, other] = await archivePackages(source, index, options);
  const isOther = published !== undefined && first?.addon.digest !== published.digest;
  if (first === undefined || other !== undefined || !isWhole(first) || isOther) {
    const what =
      published === undefined
        ? 'it does not contain exactly one whole package'
        : 'not the package that the catalog names';
    throw new CurlewError('DIGEST_MISMATCH', `${source.name}: ${what}`, { hint: REPUBLISH });
  }
  return remotePackage(file, first, {
    size: source.size,
    contents: published === undefined ? index.tocDigest : undefined,
  });
}

/**
 * A package whose contents are known from the node: no place is asked before it is fetched. It is fetched below the install
 * folder, under the package's digest.
 */
export function knownPackage(file: RemoteFile, placed: PlacedPackage, size: number): SourcePackage {
  return remotePackage(file, placed, { size, contents: undefined });
}

/** `contents` is the digest of the table of contents that was read, for a package that no catalog describes. */
function remotePackage(
  { name, published, places }: RemoteFile,
  placed: PlacedPackage,
  { size, contents }: { readonly size: number; readonly contents: Digest | undefined },
): SourcePackage {
  let path: string | undefined;
  return {
    ...placed,
    extract: async (into, options) => {
      if (path === undefined) throw new Error(`not fetched: ${name}`);
      await using source = await openFileSource(path);
      await (await packageIn(source, placed, { toc: published?.toc, ...options })).extract(into, options);
    },
    discard: async () => {
      if (path !== undefined) await rm(path, { force: true });
    },
    remote: {
      size,
      fetch: async (directory, { onBytes, report, signal }) => {
        const target = fetchedPath(directory, placed.addon.digest);
        const { fetched } = await transfer(places, target, {
          doing: `fetch ${name}`,
          sha256: published?.sha256,
          size,
          contents: published === undefined ? contents : published.toc,
          force: true,
          connections: 1,
          pace: undefined,
          elsewhere: 'publish it again, or specify a mirror with another --from',
          onBytes: (bytes) => onBytes(bytes),
          // The steps of a run are those of its plan.
          report: (event: ProgressEvent) => (event.type === 'note' ? report(event) : undefined),
          signal,
        });
        path = target;
        return fetched === 0 ? 'already fetched' : 'fetched';
      },
    },
  };
}

/** The table of contents also covers `addon.json`, which the digest of a package does not. */
export function requireContents({ name }: RangeSource, index: ArchiveIndex, toc: Digest | undefined): void {
  if (toc === undefined || index.tocDigest === toc) return;
  throw new CurlewError('DIGEST_MISMATCH', `${name}: its contents are not those in the catalog`, { hint: REPUBLISH });
}

/** Stores contain whole packages: only a bundle may leave files out. */
export function isWhole({ omitted }: Pick<SourcePackage, 'omitted'>): boolean {
  return omitted.length === 0;
}

/** The package of this digest in an archive on this machine. */
async function packageIn(
  source: RangeSource,
  { addon }: PlacedPackage,
  { toc, signal }: { readonly toc: Digest | undefined; readonly signal: AbortSignal },
): Promise<SourcePackage> {
  const index = await readIndex(source, { signal });
  requireContents(source, index, toc);
  const packages = await archivePackages(source, index, { signal });
  const same = packages.find((one) => one.addon.digest === addon.digest && isWhole(one));
  if (same !== undefined) return same;
  throw new CurlewError('DIGEST_MISMATCH', `${source.name}: not the package that was read before`, {
    hint: 'it was replaced in the meantime: run the same command again',
  });
}

function fetchedPath(directory: string, digest: Digest): string {
  return join(directory, nodePath.fetched, `${hexOf(digest)}.tar.gz`);
}

/** Creates the folder for fetched packages, and removes what earlier runs left there of other packages. */
export async function openFetchFolder(directory: string, packages: readonly SourcePackage[]): Promise<void> {
  const folder = join(directory, nodePath.fetched);
  await makeFolder(folder);
  const paths = packages.flatMap(({ addon }) => Object.values(pathsBeside(fetchedPath('', addon.digest))));
  const keep = new Set(paths.map((path) => basename(path)));
  try {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const isKept = entry.isFile() && keep.has(entry.name);
      if (!isKept) await rm(join(folder, entry.name), { recursive: true, force: true });
    }
  } catch (error) {
    throw fileError(`clear ${folder}`, error);
  }
}
