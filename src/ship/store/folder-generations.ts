/**
 * Compare-and-swap on a folder without locks that could go stale. Every value that is written with `ifMatch` is a separate
 * file `<n>`. `link` succeeds for one writer only, so the writer that creates `<n+1>` has replaced generation n atomically.
 * The object's own file is a hard link to the newest generation. A process that finds it outdated updates it.
 * Generations are kept: each is a few bytes (a release string from `VERSION`).
 */
import { link, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unless, succeeds, unlessMissing } from '../../core/errors.ts';
import { findFile, nameReplacing, partialCopy } from './folder-files.ts';
import { nameInside, requireInside } from './folder-inside.ts';
import { HIDDEN } from './key.ts';

export interface Generation {
  readonly number: number;
  readonly path: string;
}

/** The folder of a key's generations, or of all. */
export function generationFolder(root: string, key = ''): string {
  return join(root, HIDDEN, 'generations', key);
}

/** The newest generation of a key; undefined if it was never written with `ifMatch`. */
export async function newestGeneration(root: string, key: string): Promise<Generation | undefined> {
  const folder = generationFolder(root, key);
  const names = (await unlessMissing(requireInside(root, folder).then(async (at) => readdir(at)))) ?? [];
  const number = Math.max(0, ...names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number));
  return number === 0 ? undefined : { number, path: join(folder, String(number)) };
}

/** Makes a partial file the generation with this number; false if another writer has created it. */
export async function claimGeneration(root: string, key: string, number: number, partial: string): Promise<boolean> {
  const folder = generationFolder(root, key);
  const claiming = nameInside(root, folder, async () => link(partial, join(folder, String(number))));
  return succeeds(['EEXIST'], claiming);
}

/** Links the object's own file to the newest generation. Several processes may do this concurrently. */
export async function bringForward(root: string, key: string): Promise<void> {
  const target = join(root, key);
  for (;;) {
    const newest = await newestGeneration(root, key);
    if (newest === undefined) return;
    const [expected, current] = [await findFile(root, newest.path), await findFile(root, target)];
    if (expected === undefined) return;
    if (current?.stat.ino === expected.stat.ino && current.stat.dev === expected.stat.dev) return;
    // The file is a copy if this user may not link to another user's file.
    if (
      current?.stat.size === expected.stat.size &&
      (await readFile(expected.path)).equals(await readFile(current.path))
    )
      return;
    await nameReplacing(root, await partialCopy(root, expected.path, { share: true }), target);
  }
}

/** Does nothing if the process has no write permission or the disk is full: the next writer updates the file. */
export async function bringForwardIfPossible(root: string, key: string): Promise<void> {
  await unless(['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'], bringForward(root, key));
}
