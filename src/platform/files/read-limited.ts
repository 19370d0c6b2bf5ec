/** Reading whole files that somebody else has written. */
import { open } from 'node:fs/promises';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

const PIECE = 64 << 10;

/**
 * All bytes of a file, pipe or device. `NOT_FOUND` when it does not exist. More than `limit` is `FILE_UNUSABLE`, whatever its
 * size was said to be, and so is what cannot be read.
 */
export async function readLimited(path: string, limit: number): Promise<Buffer> {
  try {
    const file = await open(path, 'r');
    try {
      const parts: Buffer[] = [];
      for (let size = 0; ;) {
        const piece = Buffer.allocUnsafe(PIECE);
        const { bytesRead } = await file.read(piece);
        if (bytesRead === 0) return Buffer.concat(parts);
        size += bytesRead;
        if (size > limit) throw new CurlewError('FILE_UNUSABLE', `read ${path}: it is larger than ${limit} bytes`);
        parts.push(piece.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') throw new CurlewError('NOT_FOUND', `read ${path}: no such file`, { cause: error });
    throw fileError(`read ${path}`, error);
  }
}
