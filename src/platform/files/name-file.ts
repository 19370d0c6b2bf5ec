/** Moves a completely written file to its final name. */
import type { Stats } from 'node:fs';
import { link, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError, ifExists, isMissing, pathHint, withAddress } from '../../core/errors.ts';
import { syncFolder } from './sync-folder.ts';

function exists(path: string, force: boolean | undefined, cause?: unknown): CurlewError {
  return new CurlewError('FILE_EXISTS', `cannot write ${path}: the file already exists`, {
    hint:
      force === undefined ? 'specify another file, or delete it' : 'specify another file, or replace it with --force',
    cause,
  });
}

/**
 * Throws `FILE_EXISTS` if the path exists, unless it is a regular file and `force` is set, which is undefined for a command without
 * that option; `FILE_UNUSABLE` if it is not a regular file, or if its folder does not exist.
 */
export async function refuseExisting(path: string, force: boolean | undefined): Promise<void> {
  try {
    requireRegular(path, await stat(path));
    if (force !== true) throw exists(path, force);
  } catch (error) {
    if (!isMissing(error)) throw fileError(`write ${path}`, error);
    await requireFolder(path);
  }
}

/** Requires that an existing path at the name of an output file is a regular file. */
export function requireRegular(path: string, stats: Stats): void {
  if (stats.isFile()) return;
  const isFolder = stats.isDirectory();
  throw new CurlewError(
    'FILE_UNUSABLE',
    `cannot write ${path}: it is ${isFolder ? 'a folder' : 'not a regular file'}`,
    { hint: isFolder ? 'specify a file in it' : 'specify another file' },
  );
}

/** Requires that the folder of an output file exists: a missing one may be a typo, or a medium that is not mounted. */
export async function requireFolder(path: string): Promise<void> {
  const folder = dirname(path);
  const stats = await ifExists(`write ${withAddress(path)}`, stat(folder));
  if (stats?.isDirectory() === true) return;
  const what = stats === undefined ? 'does not exist' : 'is not a folder';
  throw new CurlewError('FILE_UNUSABLE', `cannot write ${withAddress(path)}: ${withAddress(folder)} ${what}`, {
    hint:
      stats === undefined
        ? pathHint(path, `create it first (mkdir -p ${folder}), or specify another file`, 'write a file, and copy it')
        : 'specify another file',
  });
}

/** Moves a complete, synced file next to `path` to that name. Replaces a file that has appeared there only with `force`. */
export async function nameFile(partial: string, path: string, force: boolean): Promise<void> {
  if (force) {
    await rename(partial, path);
  } else {
    // A link, unlike a rename, never replaces an existing file.
    try {
      await link(partial, path);
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') throw exists(path, force, error);
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
      await refuseExisting(path, force);
      await rename(partial, path);
    }
  }
  await syncFolder(dirname(path));
}
