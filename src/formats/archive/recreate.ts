/**
 * Recreates an archive, bit for bit, from its table of contents and payloads elsewhere. Headers, padding and end follow from
 * the table; a stored member is its payload in a frame, and a deflated one comes from the pinned deflater or is copied from
 * an archive that has it.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Deflate } from 'fflate';
import type { Bytes } from '../../core/bytes.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { ArchiveIndex, PlacedEntry, RangeReadOptions, RangeSource } from './entry.ts';
import { readHolder, type Holder } from './holder.ts';
import { BLOCK, deflatedMember, FRAMED_BLOCK, MEMBER_HEADER, memberTrailer, writeBlockHeader } from './member.ts';
import { formatEnd, headerMember, headerSize, paddingMember, paddingSize } from './place.ts';
import { endSize, parseTocJson } from './toc.ts';

/** The builder deflates larger files in chunks of this size, which yields other bytes than a single call. */
const CHUNK = 1 << 20;
/** Files that the builder itself writes are deflated in a single call, and are never larger. */
const MAX_AT_ONCE = 64 << 20;

/**
 * The index of an archive of `size` bytes, from the JSON text of its table alone. `PACKAGE_INVALID` if no archive of format
 * 1 has such a table: its members must cover the file without gaps.
 */
export function indexOfContents(json: Uint8Array, size: number, name: string): ArchiveIndex {
  const index = parseTocJson(json, size - endSize(json.byteLength), size, name);
  let at = 0;
  for (const entry of index.entries) {
    at += headerSize(entry);
    if (entry.packed === 0) continue;
    if (entry.offset !== at) throw notTiled(name, entry.path);
    at += entry.packed + paddingSize(entry.size);
  }
  if (at !== index.tocOffset) throw notTiled(name, 'the end');
  if (formatEnd(at, index.entries).index.tocDigest !== index.tocDigest) {
    throw new CurlewError('PACKAGE_INVALID', `${name}: its table of contents is not in the form of format 1`);
  }
  return index;
}

function notTiled(name: string, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${path}: some bytes belong to no entry`);
}

export interface RecreateOptions {
  readonly signal: AbortSignal;
  /** Returns memory for the next copied chunk; only that chunk uses it. */
  readonly allocate?: RangeReadOptions['allocate'];
}

/** All bytes of the archive, in order. Payloads are verified while streaming: use the bytes only after the stream has ended. */
export async function* recreateArchive(
  index: ArchiveIndex,
  holderOf: (entry: PlacedEntry) => Holder,
  options: RecreateOptions,
): Bytes {
  for (const entry of index.entries) {
    options.signal.throwIfAborted();
    yield headerMember(entry);
    if (entry.packed === 0) continue;
    const holder = holderOf(entry);
    if (!entry.stored) yield* deflated(holder, entry, options);
    else if (holder.kind === 'entry' && holder.entry.stored) yield* storedAlike(holder, entry, options);
    else yield* framed(readHolder(holder, entry, options), entry.size);
    const padding = paddingMember(entry.size);
    if (padding.byteLength > 0) yield padding;
  }
  yield* formatEnd(index.tocOffset, index.entries).members;
}

type EntryHolder = Extract<Holder, { readonly kind: 'entry' }>;

/** Stored members of equal payloads are equal: passes on the member that is read for verification. */
async function* storedAlike(
  { source, ...holder }: EntryHolder,
  entry: PlacedEntry,
  { signal, allocate }: RecreateOptions,
): Bytes {
  const passing: Uint8Array[] = [];
  const watched: RangeSource = {
    ...source,
    async *read(offset, length) {
      for await (const chunk of source.read(offset, length, { signal, allocate })) {
        passing.push(chunk);
        yield chunk;
      }
    },
  };
  for await (const verified of readHolder({ ...holder, source: watched }, entry, { signal })) {
    void verified;
    yield* passing.splice(0);
  }
  yield* passing;
}

/** A stored member around a stream of `size` bytes. */
async function* framed(raw: AsyncIterable<Uint8Array>, size: number): Bytes {
  yield MEMBER_HEADER;
  let checksum = 0;
  let done = 0;
  for await (const chunk of raw) {
    checksum = crc32(chunk, checksum);
    yield withBlockHeaders(chunk, done, size);
    done += chunk.byteLength;
  }
  yield memberTrailer(checksum, size);
}

/** Raw bytes that begin at `start` of `size`, with the headers of the blocks that begin in them. */
function withBlockHeaders(raw: Uint8Array, start: number, size: number): Uint8Array {
  const end = start + raw.byteLength;
  const blocks = Math.ceil(end / BLOCK) - Math.ceil(start / BLOCK);
  const framed = Buffer.allocUnsafe(raw.byteLength + blocks * (FRAMED_BLOCK - BLOCK));
  let at = 0;
  for (let done = start; done < end;) {
    if (done % BLOCK === 0) {
      const length = Math.min(BLOCK, size - done);
      writeBlockHeader(framed, at, length, done + length === size);
      at += FRAMED_BLOCK - BLOCK;
    }
    const until = Math.min(end, (Math.floor(done / BLOCK) + 1) * BLOCK);
    framed.set(raw.subarray(done - start, until - start), at);
    at += until - done;
    done = until;
  }
  return framed;
}

/** Copies the member from an archive that has it, or deflates again; verifies its digest, its length and its unpacked content. */
async function* deflated(holder: Holder, entry: PlacedEntry, { signal, allocate }: RecreateOptions): Bytes {
  const copied = holder.kind === 'entry' && holder.entry.packedDigest === entry.packedDigest;
  const member = copied
    ? holder.source.read(holder.entry.offset, holder.entry.packed, { signal, allocate })
    : deflateAgain(readHolder(holder, entry, { signal }), entry);
  const hash = createHash('sha256');
  let packed = 0;
  for await (const chunk of member) {
    hash.update(chunk);
    packed += chunk.byteLength;
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` === entry.packedDigest) {
    if (packed !== entry.packed) throw otherLength(entry, packed);
    if (copied) for await (const verified of readHolder(holder, entry, { signal })) void verified;
    return;
  }
  const from = holder.kind === 'entry' ? holder.source.name : holder.path;
  throw copied
    ? new CurlewError('DIGEST_MISMATCH', `${from}: ${holder.entry.path}: its packed bytes are damaged`, {
        hint: 'fetch the file again',
      })
    : new CurlewError('UNSUPPORTED', `${from}: ${entry.path} cannot be packed again with identical bytes`, {
        hint: 'specify a bundle that contains it with another --base',
      });
}

function otherLength({ path, packed }: PlacedEntry, length: number): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${path}: its packed size is ${length} bytes, not ${packed}`, {
    hint: 'the table of contents does not belong to a bundle: fetch or build the delta again',
  });
}

async function* deflateAgain(raw: AsyncIterable<Uint8Array>, { size, packedDigest }: PlacedEntry): Bytes {
  if (size > MAX_AT_ONCE) {
    yield* deflateInChunks(raw, size);
    return;
  }
  const parts: Uint8Array[] = [];
  for await (const chunk of raw) parts.push(chunk);
  const whole = Buffer.concat(parts);
  const inOneCall = deflatedMember(whole);
  if (size <= CHUNK || digestOf(inOneCall) === packedDigest) yield inOneCall;
  else yield* deflateInChunks([whole], size);
}

async function* deflateInChunks(raw: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, size: number): Bytes {
  let output: Uint8Array[] = [];
  const deflate = new Deflate({ level: 6 }, (chunk) => {
    output.push(chunk);
  });
  yield MEMBER_HEADER;
  let checksum = 0;
  for await (const piece of chunksOf(raw, CHUNK)) {
    checksum = crc32(piece, checksum);
    // A copy, because the deflater keeps its input.
    deflate.push(Uint8Array.from(piece), piece.byteLength < CHUNK);
    yield* output;
    output = [];
  }
  // The builder detects the end of a file by an empty read.
  if (size % CHUNK === 0) deflate.push(new Uint8Array(0), true);
  yield* output;
  yield memberTrailer(checksum, size);
}

/** The same bytes in chunks of exactly `length`; the last one may be shorter. */
async function* chunksOf(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, length: number): Bytes {
  let waiting: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let rest = chunk;
    while (size + rest.byteLength >= length) {
      const part = rest.subarray(0, length - size);
      yield waiting.length === 0 ? part : Buffer.concat([...waiting, part]);
      rest = rest.subarray(part.byteLength);
      [waiting, size] = [[], 0];
    }
    if (rest.byteLength === 0) continue;
    waiting.push(rest);
    size += rest.byteLength;
  }
  if (size > 0) yield Buffer.concat(waiting);
}
