/** An unpacked bundle: its files are verified against the table of contents that tar left, then moved, not copied. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, copyFile, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PlacedEntry } from '../archive/entry.ts';
import { parseTocJson } from '../archive/toc.ts';
import { digestOf, type Digest } from '../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { ADDON_JSON, prefixOf, TOC_NAME } from '../core/layout.ts';
import { checkedAddon, entriesByPackage, packageFiles, type SourcePackage } from './source.ts';
import { syncFolder } from '../files/sync-folder.ts';
import { readStateFile } from './write-file.ts';

const TOC_LIMIT = 1 << 30;
const ADDON_JSON_LIMIT = 8 << 20;

export interface FolderPackages {
  readonly packages: readonly SourcePackage[];
  /** The text of a file of the bundle's own, verified; undefined when the bundle has none of this name. */
  readonly readRoot: (name: string, limit: number) => Promise<string | undefined>;
}

/**
 * Packages of an unpacked bundle. What an earlier run has moved away is looked for in `directory`, the install folder:
 * a package that is found nowhere is left out.
 */
export async function folderPackages(
  folder: string,
  { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
): Promise<FolderPackages> {
  const text = await readStateFile(join(folder, TOC_NAME), TOC_LIMIT);
  if (text === undefined) {
    throw new CurlewError('NOT_FOUND', `open ${folder}: there is no ${TOC_NAME} in it`, {
      hint: 'name the folder that a bundle was unpacked into with tar, or the bundle itself with --bundle',
    });
  }
  const { entries } = parseTocJson(Buffer.from(text), Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, folder);
  const packages: SourcePackage[] = [];
  for (const group of entriesByPackage(entries)) {
    signal.throwIfAborted();
    const found = await readAddon([folder, directory], group.ref, group.entries);
    if (found === undefined) continue;
    const files = packageFiles(group.ref, group.entries);
    packages.push({
      ref: group.ref,
      addon: checkedAddon(found, group.ref, files, folder),
      files,
      extract: async (into, options) => {
        await movePackage(join(folder, prefixOf(group.ref)), group.entries, prefixOf(group.ref), into, options.signal);
      },
    });
  }
  const readRoot = async (name: string, limit: number): Promise<string | undefined> => {
    const entry = entries.find(({ path }) => path === name);
    if (entry === undefined) return undefined;
    const root = await readStateFile(join(folder, name), limit);
    if (root === undefined || digestOf(root) !== entry.digest) throw changed(join(folder, name));
    return root;
  };
  return { packages, readRoot };
}

async function readAddon(
  folders: readonly string[],
  ref: SourcePackage['ref'],
  entries: readonly PlacedEntry[],
): Promise<string | undefined> {
  const path = `${prefixOf(ref)}${ADDON_JSON}`;
  const entry = entries.find((one) => one.path === path);
  for (const folder of folders) {
    const text = await readStateFile(join(folder, path), ADDON_JSON_LIMIT);
    if (text !== undefined && digestOf(text) === entry?.digest) return text;
  }
  return undefined;
}

function changed(path: string): CurlewError {
  return new CurlewError('DIGEST_MISMATCH', `${path}: not the file that the bundle holds`, {
    hint: 'unpack the bundle again',
  });
}

async function movePackage(
  from: string,
  entries: readonly PlacedEntry[],
  prefix: string,
  into: string,
  signal: AbortSignal,
): Promise<void> {
  const wanted = new Map(entries.map((entry) => [entry.path.slice(prefix.length), entry]));
  try {
    await refuseStrangers(from, wanted);
    for (const [path, entry] of wanted) {
      signal.throwIfAborted();
      await settleFile(join(from, path), entry, signal);
    }
    await mkdir(dirname(into), { recursive: true });
    await moveFolder(from, into, wanted, signal);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') throw changed(from);
    throw fileError(`move ${from}`, error);
  }
}

/** A file that the table does not list would come along unverified. */
async function refuseStrangers(from: string, wanted: ReadonlyMap<string, unknown>): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name).slice(from.length);
    if (entry.isFile() && wanted.has(path)) continue;
    throw new CurlewError('PACKAGE_INVALID', `${from}${path}: the bundle holds no such file`, {
      hint: 'remove it, or unpack the bundle again into an empty folder',
    });
  }
}

/** Verifies a file, makes it independent of hard links to it, gives it its mode, and has it on disk. */
async function settleFile(path: string, { digest, mode }: PlacedEntry, signal: AbortSignal): Promise<void> {
  if ((await lstat(path)).nlink > 1) {
    const copy = `${path}.curlew-part`;
    await copyFile(path, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await rename(copy, path);
  }
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const hash = createHash('sha256');
    const stream = createReadStream('', { fd: file, autoClose: false, highWaterMark: 1 << 20, signal });
    for await (const chunk of stream as AsyncIterable<Buffer>) hash.update(chunk);
    const found: Digest = `sha256:${hash.digest('hex')}`;
    if (found !== digest) throw changed(path);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function moveFolder(
  from: string,
  into: string,
  wanted: ReadonlyMap<string, PlacedEntry>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await rename(from, into);
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error;
    for (const [path, entry] of wanted) {
      signal.throwIfAborted();
      await mkdir(dirname(join(into, path)), { recursive: true });
      await copyFile(join(from, path), join(into, path), constants.COPYFILE_EXCL);
      await settleFile(join(into, path), entry, signal);
    }
    await rm(from, { recursive: true });
  }
  const folders = new Set([...wanted.keys()].map((path) => dirname(join(into, path))));
  for (const folder of [...folders, into, dirname(into)]) await syncFolder(folder);
}
