/** Packages that lie on the node already: in the install folder, or put by when another took their place. */
import { createReadStream } from 'node:fs';
import { constants, copyFile, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, fileError } from '../core/errors.ts';
import type { Digest } from '../core/digest.ts';
import { ADDON_JSON, nodePath, OMITTED_JSON, prefixOf } from '../core/layout.ts';
import { OMITTED_JSON_LIMIT } from '../core/omitted.ts';
import { ADDON_JSON_LIMIT, parseAddonJson, refOf, type PackageFile } from '../core/package.ts';
import { formatRef, type AddonRef } from '../core/ref.ts';
import { hashFile } from '../files/hash-file.ts';
import { syncFolder } from '../files/sync-folder.ts';
import { digestInPlace, filesBelow } from './put-in-place.ts';
import type { ExtractedRecord, Records } from './records.ts';
import { checkedAddon, type SourcePackage } from './source.ts';
import { readStateFile } from '../files/state-file.ts';

/**
 * The package of this digest, wherever it lies below the install folder; every file of it has been read and compared.
 * `NOT_FOUND` when it is not there any more, or somebody has changed it.
 */
export async function keptPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { signal }: { readonly signal: AbortSignal },
): Promise<SourcePackage> {
  for (const path of [nodePath.addon(ref), nodePath.previous(ref)]) {
    const found = await readKept(join(directory, path), ref, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      return undefined;
    });
    if (found?.addon.digest === digest) return found;
  }
  throw new CurlewError('NOT_FOUND', `the package of ${formatRef(ref)} is not on this node any more, or was changed`, {
    hint: 'install it from a bundle or store that has it',
  });
}

/** A package from a store has all that belongs to it. */
const WHOLE = { omitted: [] };

/** What is known of a package that lies in place, without reading its files. */
export type PlacedPackage = Pick<SourcePackage, 'ref' | 'addon' | 'files' | 'omitted' | 'read'>;

/**
 * The whole package of this digest that lies in place, as its addon.json and the records say; undefined when it does not,
 * or only in part.
 */
export async function placedPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { extracted }: Pick<Records, 'extracted'>,
): Promise<PlacedPackage | undefined> {
  const { tree, name, version } = ref;
  const isThis = (one: ExtractedRecord): boolean =>
    one.tree === tree && one.name === name && one.version === version && one.digest === digest;
  if (!extracted.some(isThis)) return undefined;
  const folder = join(directory, nodePath.addon(ref));
  try {
    if ((await digestInPlace(directory, ref, WHOLE)) !== digest) return undefined;
    const addon = parseAddonJson((await readStateFile(join(folder, ADDON_JSON), ADDON_JSON_LIMIT)) ?? '', folder);
    if (prefixOf(refOf(addon)) !== prefixOf(ref)) return undefined;
    const files = (await filesBelow(folder)).map((file) => ({ ...file, digest: undefined }));
    return { ref, addon, files, ...WHOLE, read: readerOf(folder) };
  } catch {
    // Whatever it is, the package is fetched as if there were nothing.
    return undefined;
  }
}

function readerOf(folder: string): SourcePackage['read'] {
  return (path, options) => createReadStream(join(folder, path), options) as AsyncIterable<Buffer>;
}

async function readKept(folder: string, ref: AddonRef, signal: AbortSignal): Promise<SourcePackage | undefined> {
  const addon = await readStateFile(join(folder, ADDON_JSON), ADDON_JSON_LIMIT);
  if (addon === undefined) return undefined;
  const omitted = await readStateFile(join(folder, OMITTED_JSON), OMITTED_JSON_LIMIT);
  const files = await filesOf(folder, signal);
  return {
    ref,
    ...checkedAddon({ addon, omitted }, ref, files, folder),
    files,
    read: readerOf(folder),
    extract: async (into, options) => copyPackage(folder, files, into, options.signal),
  };
}

async function filesOf(folder: string, signal: AbortSignal): Promise<readonly PackageFile[]> {
  const files: PackageFile[] = [];
  for (const file of await filesBelow(folder)) {
    const { digest } = await hashFile(join(folder, file.path), { signal });
    files.push({ ...file, digest });
  }
  return files;
}

async function copyPackage(
  folder: string,
  files: readonly PackageFile[],
  into: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const folders = new Set([dirname(into), into]);
    for (const { path, mode } of files) {
      signal.throwIfAborted();
      const target = join(into, path);
      await mkdir(dirname(target), { recursive: true });
      folders.add(dirname(target));
      await copyFile(join(folder, path), target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      const file = await open(target, 'r');
      try {
        await file.chmod(mode);
        await file.sync();
      } finally {
        await file.close();
      }
    }
    for (const one of folders) await syncFolder(one);
  } catch (error) {
    throw fileError(`copy ${folder}`, error);
  }
}
