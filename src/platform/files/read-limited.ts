/** Reads whole files from outside, within a limit. */
import { constants, openSync } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { Socket } from 'node:net';
import { CurlewError, errnoOf, fileError, noSuchFile } from '../../core/errors.ts';

const PIECE = 64 << 10;

/**
 * All bytes of a file, pipe or device. `NOT_FOUND` if it does not exist. `FILE_UNUSABLE` if it cannot be read, or if it has
 * more than `limit` bytes, regardless of the size that it reports. Only a pipe can block, and only reading from it stops when `signal`
 * aborts.
 */
export async function readLimited(
  path: string,
  limit: number,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Buffer> {
  try {
    if ((await stat(path)).isFIFO()) return await readPipe(path, limit, signal);
    await using file = await open(path, 'r');
    return await readOpen(file, path, limit);
  } catch (error) {
    signal?.throwIfAborted();
    if (errnoOf(error) === 'ENOENT') throw noSuchFile(`read ${path}`, error);
    throw fileError(`read ${path}`, error);
  }
}

/** A thread that waits in open(2) or read(2) for a program at the other end could not be interrupted, not even by exiting. */
async function readPipe(path: string, limit: number, signal: AbortSignal | undefined): Promise<Buffer> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const piece of new Socket({
    fd,
    readable: true,
    writable: false,
    ...(signal === undefined ? {} : { signal }),
  })) {
    size += (piece as Buffer).length;
    if (size > limit) throw tooLarge(path, limit);
    parts.push(piece as Buffer);
  }
  return Buffer.concat(parts);
}

function tooLarge(path: string, limit: number): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `cannot read ${path}: larger than ${limit} bytes`);
}

/** All bytes of an open file, from its current position. More than `limit` is `FILE_UNUSABLE`; `path` is for messages. */
export async function readOpen(file: FileHandle, path: string, limit: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let size = 0; ;) {
    const piece = Buffer.allocUnsafe(PIECE);
    const { bytesRead } = await file.read(piece);
    if (bytesRead === 0) return Buffer.concat(parts);
    size += bytesRead;
    if (size > limit) throw tooLarge(path, limit);
    parts.push(piece.subarray(0, bytesRead));
  }
}
