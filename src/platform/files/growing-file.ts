/** A file that is written from the front, in one run or in several: each goes on behind what the last one left. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Digest } from '../../core/digest.ts';
import { fileError } from '../../core/errors.ts';
import { openOrMake } from './left-file.ts';
import { writeFully } from './write-fully.ts';

export interface GrowingFile extends AsyncDisposable {
  /** Bytes that it holds. */
  readonly size: () => number;
  /** The chunk may be used again when the call returns. */
  readonly append: (chunk: Uint8Array) => Promise<void>;
  /** Forgets everything that it holds. */
  readonly restart: () => Promise<void>;
  /** Everything is on disk; the digest of all of it. */
  readonly finish: () => Promise<Digest>;
}

const READ_SIZE = 1 << 20;

/**
 * Opens a file that an earlier run has left, or makes it ({@link openOrMake} says what is refused). What it holds already is
 * read once, so that its digest needs no other look at the end.
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
        // A write that was cut off may have left bytes behind the last whole one.
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
