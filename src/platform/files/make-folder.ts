/** Folders that people name. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

/**
 * Makes a folder, and those above it that are missing. By steps of our own: Node's recursive mkdir never comes back from
 * a place such as /proc, which says of every new name that the folder above it does not exist. `doing` opens messages.
 */
export async function makeFolder(path: string, doing = `make ${path}`): Promise<void> {
  try {
    await mkdir(path, { mode: 0o755 });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EEXIST' && (await isFolder(path))) return;
    const parent = dirname(path);
    if (errno === 'EEXIST' || errno === 'ENOTDIR') {
      throw new CurlewError('FILE_UNUSABLE', `${doing}: a file stands in the way of ${path}`, { cause: error });
    }
    if (errno !== 'ENOENT') throw fileError(doing, error);
    if (await isFolder(parent)) {
      throw new CurlewError('FILE_UNUSABLE', `${doing}: no folder can be made in ${parent}`, {
        hint: 'name a folder on a disk',
        cause: error,
      });
    }
    await makeFolder(parent, doing);
    await makeFolder(path, doing);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
