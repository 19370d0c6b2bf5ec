/** Removes the framing of a stored member while streaming. */
import { crc32 } from 'node:zlib';
import type { PlacedEntry, RangeReadOptions, RangeSource } from './entry.ts';
import {
  BLOCK,
  FRAMED_BLOCK,
  isBlockHeader,
  isMemberHeader,
  MEMBER_HEADER,
  memberTrailer,
  sameBytes,
  writeBlockHeader,
} from './member.ts';

/** Reads exact byte counts from a stream of chunks. */
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
 * The raw bytes of a stored member of `size` raw bytes. Checks every byte of the framing; `damaged` creates the error.
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
    // The last byte arrives before the stream ends, and a file would stay open until then.
    await chunks.return?.();
  }
}

const BLOCK_HEADER = FRAMED_BLOCK - BLOCK;

/**
 * Raw bytes of a range of a stored payload, without reading the rest. Checks the headers of the blocks that begin in the
 * range (`damaged` creates the error); the digest cannot be checked. Yields the source's chunks, with the framing removed in
 * place.
 */
export async function* storedRange(
  source: RangeSource,
  { offset: memberAt, size }: Pick<PlacedEntry, 'offset' | 'size'>,
  { offset, length, damaged, ...options }: StoredRangeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (length === 0) return;
  const begin = framedAt(offset);
  const end = framedAt(offset + length - 1) + 1;
  let at = begin;
  for await (const chunk of source.read(memberAt + MEMBER_HEADER.length + begin, end - begin, options)) {
    const remaining = takeFrameOut(chunk, at, size);
    if (remaining === undefined) throw damaged('a block header is damaged');
    at += chunk.byteLength;
    if (remaining > 0) yield chunk.subarray(0, remaining);
  }
}

interface StoredRangeOptions extends RangeReadOptions {
  /** Offset in the raw bytes. */
  readonly offset: number;
  readonly length: number;
  readonly damaged: (what: string) => Error;
}

/** Offset of a raw byte after the header of its member. */
function framedAt(raw: number): number {
  return Math.floor(raw / BLOCK) * FRAMED_BLOCK + BLOCK_HEADER + (raw % BLOCK);
}

/** Moves the raw bytes of a chunk that begins at `at` to its front, and returns their number. */
function takeFrameOut(chunk: Uint8Array, at: number, size: number): number | undefined {
  const header = new Uint8Array(BLOCK_HEADER);
  let bytes = 0;
  for (let read = 0; read < chunk.byteLength;) {
    const block = Math.floor((at + read) / FRAMED_BLOCK);
    const within = (at + read) % FRAMED_BLOCK;
    const blockEnd = Math.min(chunk.byteLength, read + FRAMED_BLOCK - within);
    if (within < BLOCK_HEADER) {
      const length = Math.min(BLOCK, size - block * BLOCK);
      writeBlockHeader(header, 0, length, block * BLOCK + length === size);
      const headerEnd = Math.min(chunk.byteLength, read + BLOCK_HEADER - within);
      const expected = header.subarray(within, within + headerEnd - read);
      if (!sameBytes(chunk.subarray(read, headerEnd), expected)) return undefined;
      read = headerEnd;
    }
    chunk.copyWithin(bytes, read, blockEnd);
    bytes += blockEnd - read;
    read = blockEnd;
  }
  return bytes;
}
