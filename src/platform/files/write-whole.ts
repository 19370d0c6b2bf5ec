/** Files that appear under their name only complete and synced; an interrupted write leaves no file. */
import { stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf, fileError } from '../../core/errors.ts';
import { nameFile, refuseExisting } from './name-file.ts';
import { sweepPartials, writeAside } from './partial.ts';
import { requireSpace } from './space.ts';

export interface WholeOptions {
  /** Replaces an existing file, which is `FILE_EXISTS` otherwise. */
  readonly force: boolean;
  /** Expected size in bytes. */
  readonly size: number;
  /** File mode; default 0644. */
  readonly mode?: number;
}

/** Writes a file with this text. */
export async function writeText(path: string, text: string, options: Omit<WholeOptions, 'size'>): Promise<void> {
  await writeWhole(path, async (file) => file.writeFile(text), { ...options, size: Buffer.byteLength(text) });
}

/** The checks of {@link writeWhole} before it writes: the name is free or may be replaced, and the disk has space. */
export async function requireFree(path: string, { force, size }: WholeOptions): Promise<void> {
  const doing = `write ${path}`;
  try {
    await refuseExisting(path, force);
    await sweepPartials(dirname(path));
    await requireSpace(dirname(path), size, doing);
  } catch (error) {
    throw fileError(doing, error);
  }
}

/** Creates a file with the content that `write` writes; `write` may also read the file. */
export async function writeWhole(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  options: WholeOptions,
): Promise<void> {
  const { force, mode = 0o644 } = options;
  const doing = `write ${path}`;
  try {
    await requireFree(path, options);
    await writeAside(dirname(path), mode, write, async (partial) => nameFile(partial, path, force));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw fileError(doing, error);
  }
}

/** The mode of what has the content of these files: only its owner may read it, unless everybody may read all of them. */
export async function modeLike(paths: readonly string[]): Promise<number> {
  const modes = await Promise.all(paths.map(async (path) => (await stat(path)).mode));
  return modes.some((mode) => (mode & 0o004) === 0) ? 0o600 : 0o644;
}
