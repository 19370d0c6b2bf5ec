/**
 * The base of a delta: bundles and packages, folders of them, and folders with unpacked packages, such as an unpacked
 * bundle or the install folder of a node.
 */
import { lstat, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Cancellable } from '../../../core/cancellable.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../../formats/archive/entry.ts';
import type { Holder } from '../../../formats/archive/holder.ts';
import { openFileSource, readIndex } from '../../../formats/archive/read.ts';
import type { Digest } from '../../../core/digest.ts';
import { CurlewError, errnoOf, fileError, type ErrorCode, ifExists } from '../../../core/errors.ts';
import type { Report } from '../../../core/events.ts';
import { KURL_FOLDER, nodePath, ownerOf, prefixOf } from '../../../core/layout.ts';
import { isHeadPath } from '../../../core/parts.ts';
import { hashFile } from '../../../platform/files/hash-file.ts';
import { openArchive } from '../open-archive.ts';
import { createSingleFlightCache } from '../../../platform/limit/single-flight-cache.ts';

export interface BasePayload {
  readonly digest: Digest;
  readonly size: number;
}

export interface Base {
  /** All payloads; hashes the files of folders. */
  readonly payloads: (options: Cancellable) => AsyncIterable<BasePayload>;
  /** Packages are unpacked, as on a node. */
  readonly isUnpacked: boolean;
  /** Prefixes of the packages, without trailing slash. */
  readonly packages: readonly string[];
  /** Location of a payload, preferably in the same packed form; undefined if missing. */
  readonly find: (entry: PlacedEntry, options: Cancellable) => Promise<Holder | undefined>;
}

interface OpenOptions extends Cancellable {
  readonly report: Report;
  /** The path as it was given, for messages. */
  readonly shown?: string;
}

/** Opens a base; reads only the tables of contents of archives. A missing path is `NOT_FOUND`. */
export async function openBase(path: string, { report, signal, shown = path }: OpenOptions): Promise<Base> {
  const isFolder = await isDirectory(path, shown);
  if (!isFolder) return archiveBase([await readArchive(path, { signal, shown })]);
  const names = await readdir(path).catch((error: unknown) => {
    throw fileError(`read ${shown}`, error);
  });
  if (names.some((name) => TREES.includes(name))) {
    const base = await folderBase(path, { signal });
    if (base.packages.length > 0) return base;
  }
  // A folder unpacked next to a bundle, as kURL documents, may be of another bundle.
  const kurl = await folderBase(join(path, KURL_FOLDER), { signal });
  const unpacked = kurl.packages.length > 0 ? [kurl] : [];
  const archives: Archive[] = [];
  for (const name of await archivesBelow(path)) {
    if (unpacked.length > 0 && name.startsWith(KURL_FOLDER)) continue;
    try {
      archives.push(await readArchive(join(path, name), { signal }));
    } catch (error) {
      if (!(error instanceof CurlewError) || !UNREADABLE.includes(error.code)) throw error;
      report({ type: 'note', level: 'warning', text: `${error.message}: skipped` });
    }
  }
  if (archives.length + unpacked.length === 0) {
    throw new CurlewError('NOT_FOUND', `cannot read ${shown}: the folder contains neither bundles nor packages`, {
      hint: PLACES,
    });
  }
  return joinBases([archiveBase(archives), ...unpacked]);
}

const PLACES = 'use a bundle, a folder of bundles, or the install folder of a node';

/** Errors for an unusable archive or part in a folder. */
const UNREADABLE: readonly ErrorCode[] = ['PACKAGE_INVALID', 'NOT_FOUND', 'DIGEST_MISMATCH'];

/** Combines several bases. */
export function joinBases(bases: readonly Base[]): Base {
  return {
    isUnpacked: bases.some((base) => base.isUnpacked),
    packages: bases.flatMap(({ packages }) => packages),
    async *payloads(options) {
      for (const base of bases) yield* base.payloads(options);
    },
    find: async (entry, options) => {
      let other: Holder | undefined;
      for (const base of bases) {
        const holder = await base.find(entry, options);
        if (holder !== undefined && isSameForm(holder, entry)) return holder;
        other ??= holder;
      }
      return other;
    },
  };
}

/** True if the payload needs no new deflation: stored payloads can be framed from any form. */
function isSameForm(holder: Holder, { packedDigest }: PlacedEntry): boolean {
  return packedDigest === undefined || (holder.kind === 'entry' && holder.entry.packedDigest === packedDigest);
}

async function isDirectory(path: string, shown: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') {
      throw new CurlewError('NOT_FOUND', `cannot open ${shown}: no such file or folder`, { hint: PLACES });
    }
    throw fileError(`open ${shown}`, error);
  }
}

interface Archive {
  readonly source: RangeSource;
  readonly index: ArchiveIndex;
}

/** A package or bundle with its table of contents. */
async function readArchive(
  path: string,
  { signal, shown }: Cancellable & { readonly shown?: string },
): Promise<Archive> {
  const source = await openArchive(path, { signal, shown, open: openEachTime });
  return { source, index: await readIndex(source, { signal }) };
}

/** Opens the file for each read only, since there may be thousands of packages. */
async function openEachTime(path: string): ReturnType<typeof openFileSource> {
  await using first = await openFileSource(path);
  return {
    name: path,
    size: first.size,
    async *read(...range) {
      await using again = await openFileSource(path);
      yield* again.read(...range);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function archivesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    throw fileError(`read ${folder}`, error);
  });
  return entries
    .filter(
      (entry) =>
        entry.isFile() && !entry.name.startsWith('.') && (isHeadPath(entry.name) || /\.t(?:ar\.)?gz$/.test(entry.name)),
    )
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .toSorted();
}

/** Converts a path of a bundle for kURL's own scripts to the path in other bundles. */
function belowKurl(path: string): string {
  return path.startsWith(KURL_FOLDER) ? path.slice(KURL_FOLDER.length) : path;
}

function archiveBase(archives: readonly Archive[]): Base {
  const holders = new Map<Digest, Holder[]>();
  const packages = new Set<string>();
  for (const { source, index } of archives) {
    for (const entry of index.entries) {
      const owner = ownerOf(belowKurl(entry.path));
      if (owner !== undefined) packages.add(prefixOf(owner).slice(0, -1));
      if (entry.packed === 0) continue;
      const same = holders.get(entry.digest);
      const holder = { kind: 'entry', source, entry } as const;
      if (same === undefined) holders.set(entry.digest, [holder]);
      else if (!same.some((one) => isSameForm(one, entry))) same.push(holder);
    }
  }
  return {
    isUnpacked: false,
    packages: [...packages],
    async *payloads() {
      for (const archive of archives) for (const entry of archive.index.entries) if (entry.packed > 0) yield entry;
    },
    find: async (entry) => {
      const candidates = holders.get(entry.digest);
      return candidates?.find((one) => isSameForm(one, entry)) ?? candidates?.[0];
    },
  };
}

/** Folders with unpacked packages. */
const TREES: readonly string[] = ['addons', 'packages', dirOfPrevious()];

function dirOfPrevious(): string {
  return nodePath.previous({ tree: 'addons', name: '', version: '' }).split('/')[0] ?? '';
}

interface PlainFile {
  readonly path: string;
  readonly size: number;
}

/** The unpacked packages of a folder, which may not exist. Hashes a file once, when a payload of its size is requested. */
export async function folderBase(folder: string, { signal }: Cancellable): Promise<Base> {
  const packages = new Set<string>();
  const bySize = new Map<number, PlainFile[]>();
  for (const tree of TREES) {
    for (const file of await packageFiles(join(folder, tree), { signal })) {
      const owner = ownerOf(file.path.slice(resolve(folder).length + 1));
      if (owner !== undefined) packages.add(prefixOf(owner).slice(0, -1));
      const same = bySize.get(file.size);
      if (same === undefined) bySize.set(file.size, [file]);
      else same.push(file);
    }
  }
  const known = createSingleFlightCache<Digest | undefined>();
  const digest = async (path: string, options: Cancellable): Promise<Digest | undefined> =>
    known.get(path, async () => digestOfFile(path, options));
  return {
    isUnpacked: true,
    packages: [...packages],
    async *payloads(options) {
      for (const { path, size } of [...bySize.values()].flat()) {
        const contentDigest = await digest(path, options);
        if (contentDigest !== undefined) yield { digest: contentDigest, size };
      }
    },
    find: async (entry, options) => {
      for (const { path } of bySize.get(entry.size) ?? []) {
        if ((await digest(path, options)) === entry.digest) return { kind: 'file', path };
      }
      return undefined;
    },
  };
}

/** Files that may belong to a package: regular files with a package's modes. Skips files with the restricted modes of hooks. */
async function packageFiles(folder: string, { signal }: Cancellable): Promise<readonly PlainFile[]> {
  const files: PlainFile[] = [];
  // The path may be a file.
  const entries = await ifExists(`read ${folder}`, readdir(folder, { recursive: true, withFileTypes: true }));
  for (const entry of entries ?? []) {
    signal.throwIfAborted();
    if (!entry.isFile()) continue;
    const path = resolve(entry.parentPath, entry.name);
    const stats = await lstat(path).catch(() => undefined);
    const mode = (stats?.mode ?? 0) & 0o777;
    if (stats?.isFile() !== true || stats.size === 0 || (mode !== 0o644 && mode !== 0o755)) continue;
    files.push({ path, size: stats.size });
  }
  return files;
}

/** Undefined if the file cannot be read. */
async function digestOfFile(path: string, { signal }: Cancellable): Promise<Digest | undefined> {
  try {
    return (await hashFile(path, { signal })).digest;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
