/** Creates folders whose paths users give. */
import { mkdir, rmdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

/**
 * Creates a folder and its missing parents, and returns the outermost of those that it has created. Throws errors of the system: to
 * Node's recursive mkdir, a disk that is full, read-only or fails is a missing folder.
 */
export async function makeMissing(path: string, mode = 0o777): Promise<string | undefined> {
  try {
    return await makeOne(path, mode);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  const first = await makeMissing(dirname(path), mode);
  const own = await makeOne(path, mode);
  return first ?? own;
}

async function makeOne(path: string, mode: number): Promise<string | undefined> {
  try {
    await mkdir(path, { mode });
    return path;
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    // Missing again: another process has removed it, and callers that try again look for that.
    if (!(await stat(path)).isDirectory()) throw error;
    return undefined;
  }
}

/**
 * Creates a folder and its missing parents. Not with Node's recursive mkdir, which never returns for a path such as /proc,
 * where every new name reports that the parent does not exist. `doing` begins messages. Returns the folders that it has created,
 * outermost first; on an error, none of them stays.
 */
export async function makeFolder(path: string, doing = `create ${path}`): Promise<readonly string[]> {
  try {
    await mkdir(path, { mode: 0o755 });
    return [path];
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EEXIST' && (await isFolder(path))) return [];
    const parent = dirname(path);
    if (errno === 'EEXIST' || errno === 'ENOTDIR') {
      throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${errno === 'EEXIST' ? path : parent} is not a folder`, {
        hint: 'specify a folder, or a path at which nothing exists yet',
      });
    }
    if (errno !== 'ENOENT') throw fileError(doing, error);
    if (await isFolder(parent)) {
      throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: cannot create a folder in ${parent}`, {
        hint: 'use a folder on a disk',
      });
    }
    const above = await makeFolder(parent, doing);
    try {
      return [...above, ...(await makeFolder(path, doing))];
    } catch (failed) {
      await removeEmpty(above);
      throw failed;
    }
  }
}

/** Removes folders that {@link makeFolder} has created, if they are still empty; others stay. Never throws. */
export async function removeEmpty(made: readonly string[]): Promise<void> {
  for (const path of made.toReversed()) await rmdir(path).catch(() => undefined);
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
