/** Nothing is read, written or removed outside of the folder of a store, wherever symbolic links in it lead. */
import { constants, mkdir, open, readlink, realpath, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { CurlewError, errnoOf } from '../core/errors.ts';
import { isWithin } from '../platform/files/is-within.ts';

function leadsOut(root: string, path: string): CurlewError {
  return new CurlewError(
    'PACKAGE_INVALID',
    `${root}: ${relative(root, path)} leads out of the store by a symbolic link`,
    {
      hint: 'put what it leads to into the store; links within the store are followed',
    },
  );
}

/**
 * The path without symbolic links. As far as it exists it must lie in the store, otherwise it is `PACKAGE_INVALID`: who can
 * write to the folder must not make others read or write elsewhere. The folder of the store itself may be a link.
 */
export async function requireInside(root: string, path: string): Promise<string> {
  const base = await realpath(root);
  for (let part = path; ;) {
    try {
      const real = await realpath(part);
      if (isWithin(base, real)) return join(real, relative(part, path));
      throw leadsOut(root, path);
    } catch (error) {
      // A part that is missing may be a link to what is missing: then whatever makes it finds the link in its way.
      if (errnoOf(error) !== 'ENOENT' || part === root) throw error;
      part = dirname(part);
    }
  }
}

/** Opens a file for reading. What is judged is what was opened, whatever happens to its name meanwhile. */
export async function openInside(root: string, path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const real = await readlink(`/proc/self/fd/${file.fd}`).catch(async () => realpath(path));
    if (!isWithin(await realpath(root), real)) throw leadsOut(root, path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Makes a folder of the store, and those above it. */
export async function makeInside(root: string, folder: string): Promise<void> {
  await mkdir(await requireInside(root, folder), { recursive: true });
}

/** Removes a file or a link of the store, or a whole folder; what is not there is no error. */
export async function removeInside(root: string, path: string, { recursive = false } = {}): Promise<void> {
  const folder = await requireInside(root, dirname(path));
  await rm(join(folder, basename(path)), { recursive, force: true });
}
