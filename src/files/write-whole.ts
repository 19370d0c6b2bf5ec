/** Large files that appear under their name only whole and synced; what is cut off leaves nothing. */
import { open, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, fileError } from '../core/errors.ts';
import { nameFile, refuseExisting } from './name-file.ts';
import { partialName, sweepPartials } from './partial.ts';
import { requireSpace } from './space.ts';

export interface WholeOptions {
  /** Replace a file that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
  /** Bytes that are going to be written. */
  readonly size: number;
}

/** Makes a file of what `write` puts into it; `write` may read that again. */
export async function writeWhole(
  path: string,
  write: (file: FileHandle) => Promise<void>,
  { force, size }: WholeOptions,
): Promise<void> {
  const doing = `write ${path}`;
  try {
    await refuseExisting(path, force);
    await sweepPartials(dirname(path));
    await requireSpace(dirname(path), size, doing);
    const partial = join(dirname(path), partialName());
    try {
      const file = await open(partial, 'wx+', 0o644);
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
