/** The name of a file that has been written whole, under another one. */
import type { Stats } from 'node:fs';
import { link, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { syncFolder } from './sync-folder.ts';

function exists(path: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_EXISTS', `write ${path}: the file is there already`, {
    hint: 'name another file, or replace it with --force',
    cause,
  });
}

/**
 * Something of this name is `FILE_EXISTS`, unless it is a regular file and may be replaced; anything else, and a name in a
 * folder that does not exist, is `FILE_UNUSABLE`.
 */
export async function refuseExisting(path: string, force: boolean): Promise<void> {
  try {
    requireRegular(path, await stat(path));
    if (!force) throw exists(path);
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw fileError(`write ${path}`, error);
    await requireFolder(path);
  }
}

/** What has the name of a file that is to be written must be a regular file. */
export function requireRegular(path: string, found: Stats): void {
  if (found.isFile()) return;
  const isFolder = found.isDirectory();
  throw new CurlewError('FILE_UNUSABLE', `write ${path}: it is ${isFolder ? 'a folder' : 'not a regular file'}`, {
    hint: isFolder ? 'name a file in it' : 'name another file',
  });
}

/** The folder of a file that is to be written must exist: it may be a slip, or a medium that is not mounted. */
export async function requireFolder(path: string): Promise<void> {
  const folder = dirname(path);
  const found = await stat(folder).catch(() => undefined);
  if (found?.isDirectory() === true) return;
  const what = found === undefined ? 'does not exist' : 'is not a folder';
  throw new CurlewError('FILE_UNUSABLE', `write ${path}: ${folder} ${what}`, {
    hint: found === undefined ? `make it first: mkdir -p ${folder}; or name a file elsewhere` : 'name a file elsewhere',
  });
}

/** Gives a whole, synced file beside `path` that name. What has appeared there meanwhile is replaced only with `force`. */
export async function nameFile(partial: string, path: string, force: boolean): Promise<void> {
  if (force) {
    await rename(partial, path);
  } else {
    // A link, unlike a rename, never replaces what appeared meanwhile.
    try {
      await link(partial, path);
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') throw exists(path, error);
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
      await refuseExisting(path, force);
      await rename(partial, path);
    }
  }
  await syncFolder(dirname(path));
}
