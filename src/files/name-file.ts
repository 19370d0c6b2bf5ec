/** The name of a file that has been written whole, under another one. */
import { link, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { syncFolder } from './sync-folder.ts';

function exists(path: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_EXISTS', `write ${path}: the file is there already`, {
    hint: 'name another file, or replace it with --force',
    cause,
  });
}

/** Something of this name is `FILE_EXISTS`, unless it is a plain file and may be replaced; anything else is `FILE_UNUSABLE`. */
export async function refuseExisting(path: string, force: boolean): Promise<void> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new CurlewError('FILE_UNUSABLE', `write ${path}: it is there and no plain file`);
    if (!force) throw exists(path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`write ${path}`, error);
  }
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
