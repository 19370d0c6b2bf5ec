/** Reads a stream, or a file, by byte count. */
import type { FileHandle } from 'node:fs/promises';

export interface ByteReader extends AsyncDisposable {
  /** `count` bytes, or fewer at the end. Buffers them, so only for small counts. */
  readonly take: (count: number) => Promise<Buffer>;
  /** The next bytes, at most `count`; empty only at the end. */
  readonly some: (count: number) => Promise<Buffer>;
  /** Passes over bytes; false if there are fewer. */
  readonly skip: (count: number) => Promise<boolean>;
}

/** Disposing of it releases the stream, even if it was not read to the end. */
export function createByteReader(stream: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = stream[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  const some = async (count: number): Promise<Buffer> => {
    while (rest.byteLength === 0) {
      const next = await chunks.next();
      if (next.done === true) return rest;
      rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    const part = rest.subarray(0, count);
    rest = rest.subarray(part.byteLength);
    return part;
  };
  return {
    some,
    take: async (count) => taken(some, count),
    skip: async (count) => {
      for (let remaining = count; remaining > 0;) {
        const { byteLength } = await some(remaining);
        if (byteLength === 0) return false;
        remaining -= byteLength;
      }
      return true;
    },
    [Symbol.asyncDispose]: async () => {
      await chunks.return?.();
    },
  };
}

/** A reader of an open file of `size` bytes, which skips without reading. It does not close the file. */
export function createFileReader(file: FileHandle, size: number): ByteReader {
  let at = 0;
  const some = async (count: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(count, READ_SIZE)), { position: at });
    at += bytesRead;
    return buffer.subarray(0, bytesRead);
  };
  return {
    some,
    take: async (count) => taken(some, count),
    skip: async (count) => {
      at += count;
      return at <= size;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

const READ_SIZE = 1 << 20;

async function taken(some: ByteReader['some'], count: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let remaining = count; remaining > 0;) {
    const part = await some(remaining);
    if (part.byteLength === 0) break;
    parts.push(part);
    remaining -= part.byteLength;
  }
  return Buffer.concat(parts);
}
