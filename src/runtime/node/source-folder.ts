/**
 * An unpacked bundle: its files are verified against its table of contents and hard-linked into the install folder. The
 * original names are removed when the package is in place, so a run can be interrupted at any moment. A trial copies them: its
 * hooks could write through a link, and the folder is still needed.
 */
import { createHash } from 'node:crypto';
import { constants, copyFile, link, lstat, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import { parseTocJson } from '../../formats/archive/toc.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { ADDON_JSON, DELTA_CONTENTS, hasBundleFiles, OMITTED_JSON, prefixOf, TOC_NAME } from '../../core/layout.ts';
import { OMITTED_JSON_LIMIT } from '../../core/omitted.ts';
import { ADDON_JSON_LIMIT, type PackageFile } from '../../core/package.ts';
import type { AddonRef } from '../../core/ref.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import {
  checkedAddon,
  entriesByPackage,
  missingFile,
  packageFiles,
  type PackageTexts,
  type SourcePackage,
} from './source.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { UNPACK_AGAIN, wrongBytes, readVerified } from './verified-file.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const TOC_LIMIT = 1 << 30;
/** Hashing uses one processor; meanwhile other files are read and synced. */
export const FILES_AT_ONCE = 8;

export interface FolderOptions extends Cancellable {
  /** The install folder. */
  readonly directory: string;
  /** The files stay in the folder, unchanged: they are copied. */
  readonly stays?: boolean | undefined;
  /** Throws if the table of contents at `path` is not trusted; absent: every one is. */
  readonly trust?: { readonly check: (name: string, text: Uint8Array, path: string) => Promise<unknown> } | undefined;
}

export interface FolderPackages {
  readonly packages: readonly SourcePackage[];
  /** Sizes and offsets of an archive have no meaning in it. */
  readonly index: ArchiveIndex;
  /** The verified text of a file in the bundle's root; undefined if the bundle has no such file. */
  readonly readRoot: (name: string, limit: number) => Promise<string | undefined>;
}

/**
 * Packages of an unpacked bundle. Packages that an earlier run has moved are read from `directory`, the install folder. A
 * package that is in neither folder is left out.
 */
export async function folderPackages(
  folder: string,
  { directory, stays = false, trust, signal }: FolderOptions,
): Promise<FolderPackages> {
  if ((await stat(folder).catch(() => undefined))?.isFile() === true) {
    throw new CurlewError(
      'FILE_UNUSABLE',
      `cannot open ${folder}: it is a file, not the folder of an unpacked bundle`,
      { hint: 'specify a bundle with --bundle' },
    );
  }
  const text = await readStateFile(join(folder, TOC_NAME), TOC_LIMIT);
  if (text === undefined) throw await withoutContents(folder);
  await trust?.check(folder, Buffer.from(text), join(folder, TOC_NAME));
  const index = parseTocJson(Buffer.from(text), Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, folder);
  const { entries } = index;
  if (entries.some(({ path }) => path === DELTA_CONTENTS)) {
    throw new CurlewError('UNSUPPORTED', `cannot open ${folder}: it is an unpacked delta`, {
      hint: 'specify the delta itself with --bundle: it need not be unpacked',
    });
  }
  const packages: SourcePackage[] = [];
  for (const group of entriesByPackage(entries)) {
    signal.throwIfAborted();
    const texts = await readTexts([folder, directory], group.ref, group.entries);
    if (texts === undefined) continue;
    const files = packageFiles(group.ref, group.entries);
    const from = join(folder, prefixOf(group.ref));
    packages.push({
      ref: group.ref,
      ...checkedAddon(texts, group.ref, files, folder),
      files,
      extract: async (into, options) => {
        const wanted = new Map(files.map((file) => [file.path, file]));
        await takePackage(from, wanted, into, { take: stays ? copyOf : linkOrCopy, signal: options.signal });
      },
      read: (path, options) => {
        const file = files.find((one) => one.path === path);
        if (file === undefined) throw missingFile(folder, group.ref, path);
        const roots = [from, join(directory, prefixOf(group.ref))];
        return readVerified(
          roots.map((root) => join(root, path)),
          file,
          options.signal,
          UNPACK_AGAIN,
        );
      },
      ...(stays ? {} : { movedFrom: folder, discard: async () => rm(from, { recursive: true, force: true }) }),
    });
  }
  const readRoot = async (name: string, limit: number): Promise<string | undefined> => {
    const entry = entries.find(({ path }) => path === name);
    if (entry === undefined) return undefined;
    const root = await readStateFile(join(folder, name), limit);
    if (root === undefined || digestOf(root) !== entry.digest) throw wrongBytes(join(folder, name), UNPACK_AGAIN);
    return root;
  };
  return { packages, index, readRoot };
}

/** True for a folder with files of a bundle in it, also if it is incomplete. */
export async function isUnpacked(folder: string): Promise<boolean> {
  return hasBundleFiles(await readdir(folder).catch(() => []));
}

/** The contents are the last file of a bundle: a folder with only the first ones was not unpacked to the end. */
async function withoutContents(folder: string): Promise<CurlewError> {
  if (await isUnpacked(folder)) {
    const what = `cannot open ${folder}: the bundle was not unpacked to its end, or files were removed: ${TOC_NAME} is missing`;
    return new CurlewError('NOT_FOUND', what, {
      hint: 'unpack the bundle again into an empty folder, and check that tar reports no error',
    });
  }
  return new CurlewError('NOT_FOUND', `cannot open ${folder}: it does not contain ${TOC_NAME}`, {
    hint: 'specify the folder that a bundle was unpacked into with tar, or the bundle itself with --bundle',
  });
}

/** Undefined if none of the folders contains the package. */
async function readTexts(
  folders: readonly string[],
  ref: AddonRef,
  entries: readonly PlacedEntry[],
): Promise<PackageTexts | undefined> {
  const find = (name: string): PlacedEntry | undefined => entries.find(({ path }) => path === prefixOf(ref) + name);
  const [addon, omitted] = [find(ADDON_JSON), find(OMITTED_JSON)];
  for (const folder of folders) {
    const text = await readListed(folder, addon, ADDON_JSON_LIMIT);
    if (text === undefined) continue;
    if (omitted === undefined) return { addon: text, omitted };
    const note = await readListed(folder, omitted, OMITTED_JSON_LIMIT);
    if (note !== undefined) return { addon: text, omitted: note };
  }
  return undefined;
}

async function readListed(folder: string, entry: PlacedEntry | undefined, limit: number): Promise<string | undefined> {
  if (entry === undefined) return undefined;
  const text = await readStateFile(join(folder, entry.path), limit);
  return text !== undefined && digestOf(text) === entry.digest ? text : undefined;
}

/** Links or copies the files of a package into a folder that does not exist yet; the originals stay. */
async function takePackage(
  from: string,
  wanted: ReadonlyMap<string, PackageFile>,
  into: string,
  { take: bring, signal }: Cancellable & { readonly take: (from: string, into: string) => Promise<void> },
): Promise<void> {
  try {
    await refuseUnlisted(from, wanted);
    const folders = new Set<string>();
    const take = async ([path, file]: readonly [string, PackageFile], within: Cancellable): Promise<void> => {
      const target = join(into, path);
      await makeMissing(dirname(target), 0o755);
      for (let folder = dirname(target); folder.length > into.length; folder = dirname(folder)) folders.add(folder);
      await bring(join(from, path), target);
      if ((await settleFile(target, file, within.signal)) !== file.digest)
        throw wrongBytes(join(from, path), UNPACK_AGAIN);
    };
    await eachLimited(wanted, take, { width: FILES_AT_ONCE, signal });
    for (const folder of [...folders, into, dirname(into)]) await syncFolder(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') throw wrongBytes(from, UNPACK_AGAIN);
    throw fileError(`link or copy ${from}`, error);
  }
}

/** A file that the table of contents does not list would be removed with the others: refuse it. */
export async function refuseUnlisted(from: string, wanted: Pick<ReadonlySet<string>, 'has'>): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name).slice(from.length);
    if (entry.isFile() && wanted.has(path)) continue;
    throw new CurlewError('PACKAGE_INVALID', `${from}${path}: the bundle has no such file`, {
      hint: 'remove it, or unpack the bundle again into an empty folder',
    });
  }
}

/** Errors of link(2) that a copy avoids: another file system, one without hard links, too many links. */
const NO_LINK = ['EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK'];

/**
 * A hard link takes no space and no time. A file is copied if it has another link (tar writes equal files as one), or if its
 * owner is another user or other users could have it open for writing: they could change it after it was verified.
 */
async function linkOrCopy(from: string, into: string): Promise<void> {
  const { nlink, uid, mode } = await lstat(from);
  if (nlink === 1 && (mode & 0o022) === 0 && uid === (await lstat(dirname(into))).uid) {
    try {
      await link(from, into);
      return;
    } catch (error) {
      if (!NO_LINK.includes(errnoOf(error) ?? '')) throw error;
    }
  }
  await copyOf(from, into);
}

/** Takes no space where the file system shares blocks of copies. */
async function copyOf(from: string, into: string): Promise<void> {
  await copyFile(from, into, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
}

/** Sets the mode of a file, syncs it, and returns the digest of its bytes. */
async function settleFile(path: string, { mode, size }: PackageFile, signal: AbortSignal): Promise<Digest> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  const memory = Buffer.allocUnsafeSlow(Math.min(1 << 20, size + 1));
  // One byte more than listed is another file.
  for (let done = 0; done <= size;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(memory);
    if (bytesRead === 0) break;
    done += bytesRead;
    hash.update(memory.subarray(0, bytesRead));
  }
  await file.chmod(mode);
  await file.sync();
  return `sha256:${hash.digest('hex')}`;
}
