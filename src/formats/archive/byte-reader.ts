/** Reads a stream by byte count, independent of its chunks. */

export interface ByteReader extends AsyncDisposable {
  /** `count` bytes, or fewer at the end. Buffers them, so only for small counts. */
  readonly take: (count: number) => Promise<Buffer>;
  /** The next bytes, at most `count`; empty only at the end. */
  readonly some: (count: number) => Promise<Buffer>;
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
    take: async (count) => {
      const parts: Buffer[] = [];
      for (let remaining = count; remaining > 0;) {
        const part = await some(remaining);
        if (part.byteLength === 0) break;
        parts.push(part);
        remaining -= part.byteLength;
      }
      return Buffer.concat(parts);
    },
    [Symbol.asyncDispose]: async () => {
      await chunks.return?.();
    },
  };
}
