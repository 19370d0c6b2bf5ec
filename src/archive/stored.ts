/** Takes the frame off a stored member while it streams by. */
import { crc32 } from 'node:zlib';
import { BLOCK, isBlockHeader, isMemberHeader, MEMBER_HEADER, memberTrailer, sameBytes } from './member.ts';

/** Gathers exactly the bytes asked for from a stream of chunks. */
function byteReader(iterator: AsyncIterator<Uint8Array>): (length: number) => Promise<Uint8Array | undefined> {
  let current: Uint8Array = new Uint8Array(0);
  return async (length) => {
    if (current.byteLength >= length) {
      const taken = current.subarray(0, length);
      current = current.subarray(length);
      return taken;
    }
    const whole = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      if (current.byteLength === 0) {
        const next = await iterator.next();
        if (next.done === true) return undefined;
        current = next.value;
      }
      const part = current.subarray(0, length - filled);
      whole.set(part, filled);
      filled += part.byteLength;
      current = current.subarray(part.byteLength);
    }
    return whole;
  };
}

/**
 * The raw bytes of a stored member of `size` raw bytes. Every byte of the frame is checked; `damaged` makes the error.
 */
export async function* unframed(
  packed: AsyncIterable<Uint8Array>,
  size: number,
  damaged: (what: string) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks = packed[Symbol.asyncIterator]();
  const take = byteReader(chunks);
  const need = async (length: number): Promise<Uint8Array> => {
    const bytes = await take(length);
    if (bytes === undefined) throw damaged('it ends too early');
    return bytes;
  };
  try {
    if (!isMemberHeader(await need(MEMBER_HEADER.length))) throw damaged('a gzip member header is damaged');
    let checksum = 0;
    for (let done = 0; done < size;) {
      const length = Math.min(BLOCK, size - done);
      if (!isBlockHeader(await need(5), 0, length, done + length === size)) throw damaged('a block header is damaged');
      const block = await need(length);
      checksum = crc32(block, checksum);
      done += length;
      yield block;
    }
    if (!sameBytes(await need(8), memberTrailer(checksum, size))) throw damaged('a gzip checksum does not match');
  } finally {
    // The last byte is known before the stream says that it has ended; whoever reads a file holds it open until then.
    await chunks.return?.();
  }
}
