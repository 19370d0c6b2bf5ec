/**
 * Compare-and-swap on a folder without locks that could go stale. Every value that a key takes by `ifMatch` is a file
 * `<n>` of its own; `link` gives a name to one writer only, so who creates `<n+1>` has replaced generation n, at once and
 * for good. The object's own file is a second name of the newest generation: who finds it behind brings it forward.
 * Generations stay: they are a few bytes each (the release strings that `VERSION` has held).
 */
import { link, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../core/errors.ts';
import { syncFolder } from '../platform/files/sync-folder.ts';
import { findFile, nameReplacing, partialCopy } from './folder-files.ts';
import { makeInside, removeInside, requireInside } from './folder-inside.ts';
import { HIDDEN } from './key.ts';

export interface Generation {
  readonly number: number;
  readonly path: string;
}

function generationFolder(root: string, key: string): string {
  return join(root, HIDDEN, 'generations', key);
}

/** The newest generation of a key, or undefined when it was never replaced by condition. */
export async function newestGeneration(root: string, key: string): Promise<Generation | undefined> {
  const folder = generationFolder(root, key);
  let names: readonly string[];
  try {
    names = await readdir(await requireInside(root, folder));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
  const number = Math.max(0, ...names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number));
  return number === 0 ? undefined : { number, path: join(folder, String(number)) };
}

/** Makes a partial file the generation with this number; false when another writer has it. */
export async function claimGeneration(root: string, key: string, number: number, partial: string): Promise<boolean> {
  const folder = generationFolder(root, key);
  await makeInside(root, folder);
  try {
    await link(partial, join(folder, String(number)));
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
  await syncFolder(folder);
  return true;
}

/** Makes the object's own file the newest generation; right also when several do it at once. */
export async function bringForward(root: string, key: string): Promise<void> {
  const target = join(root, key);
  for (;;) {
    const newest = await newestGeneration(root, key);
    if (newest === undefined) return;
    const [wanted, found] = [await findFile(root, newest.path), await findFile(root, target)];
    if (wanted === undefined) return;
    if (found?.stat.ino === wanted.stat.ino && found.stat.dev === wanted.stat.dev) return;
    // Where this user may not link to another's file it was copied.
    if (found?.stat.size === wanted.stat.size && (await readFile(wanted.path)).equals(await readFile(found.path)))
      return;
    await nameReplacing(root, await partialCopy(root, wanted.path, { share: true }), target);
  }
}

/** A reader may have no right to write; the next writer does it then. */
export async function bringForwardIfPossible(root: string, key: string): Promise<void> {
  try {
    await bringForward(root, key);
  } catch (error) {
    if (!['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw error;
  }
}

export async function removeGenerations(root: string, key: string): Promise<void> {
  await removeInside(root, generationFolder(root, key), { recursive: true });
}
