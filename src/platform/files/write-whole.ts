/** Files that appear under their name only whole and synced; what is cut off leaves nothing. */
import { open, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, fileError } from '../../core/errors.ts';
import { nameFile, refuseExisting } from './name-file.ts';
import { partialName, sweepPartials } from './partial.ts';
import { requireSpace } from './space.ts';

export interface WholeOptions {
  /** Replace a file that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
  /** Bytes that are going to be written. */
  readonly size: number;
  /** Of the file; 0644 where nothing is said. */
  readonly mode?: number;
}

/** A whole file of this text. */
export async function writeText(path: string, text: string, options: Omit<WholeOptions, 'size'>): Promise<void> {
  await writeWhole(path, async (file) => file.writeFile(text), { ...options, size: Buffer.byteLength(text) });
}

/** What {@link writeWhole} asks before it writes: that the name is free, or may be replaced, and that there is room. */
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

/** Makes a file of what `write` puts into it; `write` may read that again. */
export async function writeWhole(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  options: WholeOptions,
): Promise<void> {
  const { force, mode = 0o644 } = options;
  const doing = `write ${path}`;
  try {
    await requireFree(path, options);
    const partial = join(dirname(path), partialName());
    try {
      const file = await open(partial, 'wx+', mode);
      try {
        await write(file);
        await file.sync();
      } finally {
        await file.close();
      }
      await nameFile(partial, path, force);
    } finally {
      await rm(partial, { force: true });
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw fileError(doing, error);
  }
}
