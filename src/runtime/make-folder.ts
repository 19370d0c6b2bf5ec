/** Folders that people name. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';

/**
 * Makes a folder, and those above it that are missing. By steps of our own: Node's recursive mkdir never comes back from
 * a place such as /proc, which says of every new name that the folder above it does not exist.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o755 });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EEXIST' && (await isFolder(path))) return;
    const parent = dirname(path);
    if (errno !== 'ENOENT') throw fileError(`make ${path}`, error);
    if (await isFolder(parent)) {
      throw new CurlewError('FILE_UNUSABLE', `make ${path}: no folder can be made in ${parent}`, {
        hint: 'name a folder on a disk',
        cause: error,
      });
    }
    await makeFolder(parent);
    await makeFolder(path);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
