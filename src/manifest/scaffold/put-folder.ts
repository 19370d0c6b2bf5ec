/** Puts a folder of new files in its place, whole or not at all. */
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { partialName, sweepPartials } from '../../platform/files/partial.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { writeNew } from '../../platform/files/write-new.ts';

interface Options {
  /** For `FILE_EXISTS`: what to do instead. */
  readonly hint: string;
  readonly signal: AbortSignal;
}

const MOST_NAMED = 8;

/** Throws `FILE_EXISTS`, with what is there, if anything is. */
export async function assertNothingAt(path: string, hint: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(`look at ${path}`, error);
  });
  if (found === undefined) return;
  const names = found.isDirectory() ? (await readdir(path)).toSorted() : [];
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  const within = names.length === 0 ? '' : `, with ${names.slice(0, MOST_NAMED).join(', ')}${more}`;
  throw new CurlewError('FILE_EXISTS', `${path} is there already${within}`, { hint });
}

/**
 * Writes files below `root/<folder>`, which must not be there: they are made aside, in `root`, and appear at once. Files
 * for which `runs` holds can be run. On failure and on an abort nothing is left, of folders on the way neither.
 */
export async function putFolder(
  root: string,
  folder: string,
  files: ReadonlyMap<string, string>,
  runs: (path: string) => boolean,
  { hint, signal }: Options,
): Promise<void> {
  const target = join(root, folder);
  await assertNothingAt(target, hint);
  await sweepPartials(root, { folders: true });
  const aside = join(root, partialName());
  let first: string | undefined;
  let claimed = false;
  try {
    first = await mkdir(dirname(target), { recursive: true });
    for (const [path, text] of files) {
      signal.throwIfAborted();
      await writeWhole(join(aside, path), text, runs(path) ? 0o755 : 0o644);
    }
    signal.throwIfAborted();
    // Whoever makes the folder has it; an empty one gives way to another by rename.
    await mkdir(target);
    claimed = true;
    await rename(aside, target);
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    if (claimed) await rmdir(target).catch(() => undefined);
    if (first !== undefined) await removeEmpty(dirname(target), first);
    signal.throwIfAborted();
    if (errnoOf(error) === 'EEXIST') await assertNothingAt(target, hint);
    throw fileError(`make ${target}`, error);
  }
  await syncFolder(dirname(target));
}

async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeNew(path, text, mode);
}

/** From a folder up to `first`, as far as they are empty. */
async function removeEmpty(from: string, first: string): Promise<void> {
  for (let path = from; path.startsWith(first); path = dirname(path)) {
    try {
      await rmdir(path);
    } catch {
      return;
    }
  }
}
