/** A regular file, open for reading; its size and digest. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError, noSuchFile } from '../../core/errors.ts';

const READ_SIZE = 1 << 20;
/** A pipe without a writer would block open() forever. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;

export interface HashedFile {
  /** Bytes read. */
  readonly size: number;
  /** sha256 of those bytes. */
  readonly digest: Digest;
}

/**
 * Reads a file once, to its end; `onChunk` may use each chunk until it resolves. `NOT_FOUND` if the file does not exist,
 * `FILE_UNUSABLE` if it is not a regular file or cannot be read.
 */
export async function hashFile(
  path: string,
  {
    onChunk,
    signal,
  }: { readonly onChunk?: ((chunk: Uint8Array) => Promise<void> | void) | undefined; readonly signal: AbortSignal },
): Promise<HashedFile> {
  const hash = createHash('sha256');
  const { file, size: expected } = await openRegular(path);
  await using _open = file;
  const memory = Buffer.allocUnsafeSlow(Math.min(READ_SIZE, expected + 1));
  for (let size = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(memory, 0, memory.byteLength, size).catch((error: unknown) => {
      throw fileError(`read ${path}`, error);
    });
    if (bytesRead === 0) return { size, digest: `sha256:${hash.digest('hex')}` };
    const chunk = memory.subarray(0, bytesRead);
    hash.update(chunk);
    size += bytesRead;
    await onChunk?.(chunk);
  }
}

/** Never blocks. `NOT_FOUND` if the file does not exist, `FILE_UNUSABLE` if it is not a regular file or cannot be opened. */
export async function openRegular(path: string): Promise<{ readonly file: FileHandle; readonly size: number }> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, READ_ONLY);
    const stats = await file.stat();
    if (stats.isFile()) return { file, size: stats.size };
    throw new CurlewError('FILE_UNUSABLE', `cannot open ${path}: not a file`);
  } catch (error) {
    await file?.close();
    if (errnoOf(error) !== 'ENOENT') throw fileError(`open ${path}`, error);
    throw noSuchFile(`open ${path}`, error);
  }
}
