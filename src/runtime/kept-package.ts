/** Packages that lie on the node already: in the install folder, or put by when another took their place. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, copyFile, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, fileError } from '../core/errors.ts';
import type { Digest } from '../core/digest.ts';
import { ADDON_JSON, nodePath } from '../core/layout.ts';
import type { PackageFile } from '../core/package.ts';
import { formatRef, type AddonRef } from '../core/ref.ts';
import { syncFolder } from '../files/sync-folder.ts';
import { checkedAddon, type SourcePackage } from './source.ts';
import { readStateFile } from './write-file.ts';

const ADDON_JSON_LIMIT = 8 << 20;

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

async function readKept(folder: string, ref: AddonRef, signal: AbortSignal): Promise<SourcePackage | undefined> {
  const text = await readStateFile(join(folder, ADDON_JSON), ADDON_JSON_LIMIT);
  if (text === undefined) return undefined;
  const files = await filesOf(folder, signal);
  const addon = checkedAddon(text, ref, files, folder);
  return {
    ref,
    addon,
    files,
    read: (path, options) => createReadStream(join(folder, path), options) as AsyncIterable<Buffer>,
    extract: async (into, options) => copyPackage(folder, files, into, options.signal),
  };
}

async function filesOf(folder: string, signal: AbortSignal): Promise<readonly PackageFile[]> {
  const files: PackageFile[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    signal.throwIfAborted();
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode, size } = await stat(path);
    const executable = (mode & 0o100) !== 0;
    files.push({
      path: path.slice(folder.length + 1),
      mode: executable ? 0o755 : 0o644,
      size,
      digest: await digestFile(path, signal),
    });
  }
  return files;
}

async function digestFile(path: string, signal: AbortSignal): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { signal }) as AsyncIterable<Buffer>) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
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
