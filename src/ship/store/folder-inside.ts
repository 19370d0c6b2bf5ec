/** Prevents symbolic links in a store's folder from redirecting reads, writes and removals to places outside of it. */
import { constants, open, readlink, realpath, rm, rmdir, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { isWithin } from '../../platform/files/is-within.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

function escapes(root: string, path: string): CurlewError {
  return new CurlewError(
    'PACKAGE_INVALID',
    `${root}: ${relative(root, path)} is a symbolic link to a place outside of the store`,
    { hint: 'replace the link with its target; only links within the store are followed' },
  );
}

/**
 * The path without symbolic links. Its existing part must be in the store, otherwise the result is `PACKAGE_INVALID`: a user
 * with write access to the folder must not redirect other users' reads and writes. The store's folder itself may be a link.
 */
export async function requireInside(root: string, path: string): Promise<string> {
  const base = await realpath(root);
  for (let part = path; ;) {
    try {
      const real = await realpath(part);
      if (isWithin(base, real)) return join(real, relative(part, path));
      throw escapes(root, path);
    } catch (error) {
      // The missing part may be a dangling link. Creating a file there then fails because the link exists.
      if (errnoOf(error) !== 'ENOENT' || part === root) throw error;
      part = dirname(part);
    }
  }
}

/** Opens a file for reading. Checks the path of the open descriptor, so that a concurrent rename cannot bypass the check. */
export async function openInside(root: string, path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const real = await readlink(`/proc/self/fd/${file.fd}`).catch(async () => realpath(path));
    if (!isWithin(await realpath(root), real)) throw escapes(root, path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Creates a folder of the store and its parents. */
export async function makeInside(root: string, folder: string): Promise<void> {
  await makeMissing(await requireInside(root, folder));
}

/** Times that a folder may be removed before its first file has a name. */
const MAX_REMOVALS = 100;

/**
 * Creates a folder of the store and its parents, and calls `name`, which gives a file its name in it. Others may remove the
 * folder as long as it is empty ({@link removeEmptyInside}): then both are repeated. The name survives a crash.
 */
export async function nameInside(root: string, folder: string, name: () => Promise<void>): Promise<void> {
  for (let removals = 0; ; removals += 1) {
    try {
      await makeInside(root, folder);
      await name();
      break;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || removals === MAX_REMOVALS) throw error;
    }
  }
  await syncFolder(folder).catch((error: unknown) => {
    // The file was deleted meanwhile, and its folder with it.
    if (errnoOf(error) !== 'ENOENT') throw error;
  });
}

/** Removes the folders above a path, up to `top`, that are empty. Whatever cannot be removed stays. */
export async function removeEmptyInside(root: string, top: string, path: string): Promise<void> {
  try {
    for (let at = dirname(path); at.startsWith(`${top}/`); at = dirname(at)) {
      await rmdir(join(await requireInside(root, dirname(at)), basename(at)));
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

/** Removes a file, link or folder of the store. A missing path is not an error. */
export async function removeInside(root: string, path: string, { recursive = false } = {}): Promise<void> {
  const folder = await requireInside(root, dirname(path));
  await rm(join(folder, basename(path)), { recursive, force: true });
}
