/** Creates a folder of new files atomically. */
import { firstOf } from '../../core/counted.ts';
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError, ifExists } from '../../core/errors.ts';
import { partialName, sweepPartials } from '../../platform/files/partial.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { writeNew } from '../../platform/files/write-new.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

interface Options {
  /** Hint for `FILE_EXISTS`. */
  readonly hint: string;
  readonly signal: AbortSignal;
}

const MAX_NAMED = 8;

/** Throws `FILE_EXISTS`, with the existing files, if the path exists. */
export async function assertNothingAt(path: string, hint: string): Promise<void> {
  const stats = await ifExists(`read ${path}`, lstat(path));
  if (stats === undefined) return;
  const names = stats.isDirectory() ? (await readdir(path)).toSorted() : [];
  const within = names.length === 0 ? '' : `, with ${firstOf(names, MAX_NAMED)}`;
  throw new CurlewError('FILE_EXISTS', `${path} already exists${within}`, { hint });
}

/**
 * Writes files to `root/<folder>`, which must not exist: they are written to a temporary folder in `root`, then renamed. Files
 * for which `runs` is true are executable. On failure and on abort nothing is left, including created parent folders.
 */
export async function createAddonFolder(
  root: string,
  folder: string,
  files: ReadonlyMap<string, string>,
  runs: (path: string) => boolean,
  { hint, signal }: Options,
): Promise<void> {
  const target = join(root, folder);
  await assertNothingAt(target, hint);
  await sweepPartials(root, { folders: true });
  const temporary = join(root, partialName());
  let first: string | undefined;
  let claimed = false;
  try {
    first = await makeMissing(dirname(target));
    for (const [path, text] of files) {
      signal.throwIfAborted();
      await writeWhole(join(temporary, path), text, runs(path) ? 0o755 : 0o644);
    }
    signal.throwIfAborted();
    // mkdir claims the name; rename replaces the empty folder.
    await mkdir(target);
    claimed = true;
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    if (claimed) await rmdir(target).catch(() => undefined);
    if (first !== undefined) await removeEmpty(dirname(target), first);
    signal.throwIfAborted();
    if (errnoOf(error) === 'EEXIST') await assertNothingAt(target, hint);
    throw fileError(`create ${target}`, error);
  }
  await syncFolder(dirname(target));
}

async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  await makeMissing(dirname(path));
  await writeNew(path, text, mode);
}

/** Removes empty folders, from a folder up to `first`. */
async function removeEmpty(from: string, first: string): Promise<void> {
  for (let path = from; path.startsWith(first); path = dirname(path)) {
    try {
      await rmdir(path);
    } catch {
      return;
    }
  }
}
