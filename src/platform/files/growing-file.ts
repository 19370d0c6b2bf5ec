/** A file that is written sequentially over one or more runs: each run appends to the bytes of the previous one. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Digest } from '../../core/digest.ts';
import { fileError } from '../../core/errors.ts';
import { openOrMake } from './left-file.ts';
import { writeFully } from './write-fully.ts';

export interface GrowingFile extends AsyncDisposable {
  /** Current size in bytes. */
  readonly size: () => number;
  /** The caller may reuse the chunk when the promise resolves. */
  readonly append: (chunk: Uint8Array) => Promise<void>;
  /** Discards all bytes. */
  readonly restart: () => Promise<void>;
  /** Flushes the file to disk and returns the digest of its content. */
  readonly finish: () => Promise<Digest>;
}

const READ_SIZE = 1 << 20;

/**
 * Opens a file that an earlier run has left, or creates it ({@link openOrMake} defines which files are refused). Reads the
 * existing bytes once, so that the digest needs no second read at the end.
 */
export async function openGrowingFile(
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<GrowingFile> {
  const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw error;
      throw fileError(`write ${path}`, error);
    }
  };
  const file = await openOrMake(path);
  const hash = { now: createHash('sha256') };
  let size = 0;
  try {
    size = await guarded(() => hashAll(file, hash.now, signal));
  } catch (error) {
    await file.close();
    throw error;
  }
  return {
    size: () => size,
    append: async (chunk) =>
      guarded(async () => {
        await writeFully(file, chunk, size);
        hash.now.update(chunk);
        size += chunk.byteLength;
      }),
    restart: async () =>
      guarded(async () => {
        await file.truncate(0);
        size = 0;
        hash.now = createHash('sha256');
      }),
    finish: async () =>
      guarded(async () => {
        // An interrupted write may have left bytes after the last complete one.
        await file.truncate(size);
        await file.sync();
        const digest: Digest = `sha256:${hash.now.copy().digest('hex')}`;
        return digest;
      }),
    [Symbol.asyncDispose]: async () => file.close(),
  };
}

async function hashAll(file: FileHandle, hash: ReturnType<typeof createHash>, signal: AbortSignal): Promise<number> {
  const chunk = Buffer.allocUnsafeSlow(READ_SIZE);
  for (let size = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, size);
    if (bytesRead === 0) return size;
    hash.update(chunk.subarray(0, bytesRead));
    size += bytesRead;
  }
}
