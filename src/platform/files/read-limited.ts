/** Reads whole files from outside, within a limit. */
import { open, type FileHandle } from 'node:fs/promises';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

const PIECE = 64 << 10;

/**
 * All bytes of a file, pipe or device. `NOT_FOUND` if it does not exist. `FILE_UNUSABLE` if it cannot be read, or if it has
 * more than `limit` bytes, regardless of the size that it reports.
 */
export async function readLimited(path: string, limit: number): Promise<Buffer> {
  try {
    const file = await open(path, 'r');
    try {
      return await readOpen(file, path, limit);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT')
      throw new CurlewError('NOT_FOUND', `cannot read ${path}: no such file`, { cause: error });
    throw fileError(`read ${path}`, error);
  }
}

/** All bytes of an open file, from its current position. More than `limit` is `FILE_UNUSABLE`; `path` is for messages. */
export async function readOpen(file: FileHandle, path: string, limit: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let size = 0; ;) {
    const piece = Buffer.allocUnsafe(PIECE);
    const { bytesRead } = await file.read(piece);
    if (bytesRead === 0) return Buffer.concat(parts);
    size += bytesRead;
    if (size > limit) throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: larger than ${limit} bytes`);
    parts.push(piece.subarray(0, bytesRead));
  }
}
