/** A package that is not on this machine: what is in it is read by range, its bytes are brought by the fetch phase. */
import { createHash } from 'node:crypto';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openFileSource, readIndex } from '../../formats/archive/read.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { verifyArchive } from '../../formats/archive/verify.ts';
import { hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { tryPlaces, type FetchPlace } from '../../store/places.ts';
import { openStoreSource } from '../../store/source.ts';
import type { PlacedPackage } from '../node/placed-package.ts';
import { archivePackages, type SourcePackage } from '../node/source.ts';
import { fetchFile, partialPaths, type FetchOptions } from './fetch-file.ts';

interface PublishedFile {
  readonly digest: Digest;
  readonly sha256: Digest;
  /** Of the table of contents; undefined where the catalogue does not tell it. */
  readonly toc?: Digest | undefined;
  readonly size: number;
}

export interface RemoteFile {
  /** For messages: `flannel-0.28.7`. */
  readonly name: string;
  /** What a catalogue says of it; undefined for a package that none names. */
  readonly published: PublishedFile | undefined;
  /** In their order; never empty. */
  readonly places: readonly FetchPlace[];
}

type OpenOptions = Pick<FetchOptions, 'report' | 'signal'>;

/**
 * Reads what is in a package at the first place that has the right one. Nothing is fetched yet: its `fetch` does that,
 * before its `extract`.
 */
export async function openRemotePackage(file: RemoteFile, options: OpenOptions): Promise<SourcePackage> {
  return tryPlaces(file.places, async (place) => openAt(file, place, options), options);
}

async function openAt(file: RemoteFile, { store, key }: FetchPlace, options: OpenOptions): Promise<SourcePackage> {
  const { published } = file;
  const source = await openStoreSource(store, key, options);
  if (published !== undefined && source.size !== published.size) {
    throw new CurlewError('DIGEST_MISMATCH', `${source.name}: has ${source.size} bytes, not ${published.size}`, {
      hint: 'publish the release again, or name a mirror with another --from',
    });
  }
  const index = await readIndex(source, options);
  requireContents(source, index, published?.toc);
  const [found, other] = await archivePackages(source, index, options);
  const isOther = published !== undefined && found?.addon.digest !== published.digest;
  if (found === undefined || other !== undefined || !isWhole(found) || isOther) {
    const what =
      published === undefined ? 'it does not hold one whole package' : 'not the package that the catalogue names';
    throw new CurlewError('DIGEST_MISMATCH', `${source.name}: ${what}`, {
      hint: 'publish the release again, or name a mirror with another --from',
    });
  }
  return knownPackage(file, found, source.size);
}

/**
 * A package of which enough is known: nobody is asked for it before it is fetched. What is fetched lies below the install
 * folder, under the package's identity.
 */
export function knownPackage(file: RemoteFile, found: PlacedPackage, size: number): SourcePackage {
  const { digest } = found.addon;
  const wanted = { name: file.name, size, sha256: file.published?.sha256, places: file.places };
  let path: string | undefined;
  return {
    ...found,
    extract: async (into, options) => {
      if (path === undefined) throw new Error(`not fetched: ${file.name}`);
      await using source = await openFileSource(path);
      await (await packageIn(source, found, { toc: file.published?.toc, ...options })).extract(into, options);
    },
    discard: async () => {
      if (path !== undefined) await rm(path, { force: true });
    },
    remote: {
      size,
      fetch: async (directory, options) => {
        const target = fetchedPath(directory, digest);
        const known = await isThere(target, wanted, options.signal);
        if (!known) await fetchFile(wanted, target, options);
        if (wanted.sha256 === undefined) await proveFetched(target, found, options.signal);
        path = target;
        return known ? 'there already' : 'fetched';
      },
    },
  };
}

/** Beside the files that make the identity of a package, its table of contents names its `addon.json`. */
export function requireContents({ name }: RangeSource, index: ArchiveIndex, toc: Digest | undefined): void {
  if (toc === undefined || index.tocDigest === toc) return;
  throw new CurlewError('DIGEST_MISMATCH', `${name}: its contents are not those that the catalogue names`, {
    hint: 'publish the release again, or name a mirror with another --from',
  });
}

/** Stores have whole packages: only a bundle may leave something out. */
export function isWhole({ omitted }: Pick<SourcePackage, 'omitted'>): boolean {
  return omitted.length === 0;
}

/** The package of this identity in an archive that lies on this machine. */
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
    hint: 'it was replaced meanwhile: run the same command again',
  });
}

/** No catalogue vouches for these bytes: they must prove themselves, or they go away. */
async function proveFetched(path: string, found: PlacedPackage, signal: AbortSignal): Promise<void> {
  try {
    await using source = await openFileSource(path);
    await verifyArchive(source, { signal });
    await packageIn(source, found, { toc: undefined, signal });
  } catch (error) {
    if (!signal.aborted) await rm(path, { force: true });
    throw error;
  }
}

function fetchedPath(directory: string, digest: Digest): string {
  return join(directory, nodePath.fetched, `${hexOf(digest)}.tar.gz`);
}

/** What an earlier run has fetched counts only if it is right to the last byte; anything else goes away. */
async function isThere(
  path: string,
  { size, sha256 }: { readonly size: number; readonly sha256: Digest | undefined },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await using source = await openFileSource(path);
    if (source.size === size && (sha256 === undefined || (await hashOf(source, signal)) === sha256)) return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
  }
  await rm(path, { recursive: true, force: true });
  return false;
}

async function hashOf(source: RangeSource, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of source.read(0, source.size, { signal })) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** Makes the folder for what is fetched, and removes what earlier runs left there of other packages. */
export async function openFetchFolder(directory: string, wanted: readonly SourcePackage[]): Promise<void> {
  const folder = join(directory, nodePath.fetched);
  await makeFolder(folder);
  const keep = new Set(
    wanted.flatMap(({ addon }) => {
      const path = fetchedPath('', addon.digest);
      const { partial, note } = partialPaths(path);
      return [path, partial, note].map((one) => basename(one));
    }),
  );
  try {
    for (const name of await readdir(folder)) {
      if (!keep.has(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  } catch (error) {
    throw fileError(`clear ${folder}`, error);
  }
}

/** The folder goes away with its last package. */
export async function closeFetchFolder(directory: string): Promise<void> {
  await rmdir(join(directory, nodePath.fetched)).catch(() => undefined);
}
