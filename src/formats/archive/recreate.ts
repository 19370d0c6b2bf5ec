/**
 * An archive made again, bit for bit, from its table of contents and payloads that lie elsewhere. Headers, padding and
 * end follow from the table; a stored member is its payload in a frame, and a deflated one comes from the pinned deflater
 * or is copied from an archive that has it.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Deflate } from 'fflate';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { ArchiveIndex, PlacedEntry, RangeReadOptions, RangeSource } from './entry.ts';
import { readHolder, type Holder } from './holder.ts';
import { BLOCK, deflatedMember, FRAMED_BLOCK, MEMBER_HEADER, memberTrailer, writeBlockHeader } from './member.ts';
import { formatEnd, headerMember, headerSize, paddingMember, paddingSize } from './place.ts';
import { endSize, parseTocJson } from './toc.ts';

/** A larger file is deflated in pieces of this size by the builder, which makes other bytes than in one go. */
const PIECE = 1 << 20;
/** What the builder itself has written is deflated in one go, and is never larger. */
const MOST_AT_ONCE = 64 << 20;

/**
 * The index of an archive of `size` bytes by the JSON text of its table alone. `PACKAGE_INVALID` when no archive of
 * format 1 has such a table: its members must tile the file.
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
    throw new CurlewError('PACKAGE_INVALID', `${name}: its table of contents is not written as format 1 has it`);
  }
  return index;
}

function notTiled(name: string, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${path}: there are bytes that belong to no entry`);
}

export interface RecreateOptions {
  readonly signal: AbortSignal;
  /** Memory for the next chunk that is copied; only that chunk uses it. */
  readonly allocate?: RangeReadOptions['allocate'];
}

/** All bytes of the archive, in order. Payloads are proved as they pass: use what came only when the stream has ended. */
export async function* recreateArchive(
  index: ArchiveIndex,
  holderOf: (entry: PlacedEntry) => Holder,
  options: RecreateOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
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

/** Stored members of equal payloads are equal: the one that is read for its proof is passed on as it is. */
async function* storedAlike(
  { source, ...holder }: EntryHolder,
  entry: PlacedEntry,
  { signal, allocate }: RecreateOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
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
  for await (const proved of readHolder({ ...holder, source: watched }, entry, { signal })) {
    void proved;
    yield* passing.splice(0);
  }
  yield* passing;
}

/** A stored member around a stream of `size` bytes. */
async function* framed(raw: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array, void, undefined> {
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

/** Raw bytes that begin at `start` of `size`, with the headers of the blocks that begin among them. */
function withBlockHeaders(raw: Uint8Array, start: number, size: number): Uint8Array {
  const end = start + raw.byteLength;
  const blocks = Math.ceil(end / BLOCK) - Math.ceil(start / BLOCK);
  const made = Buffer.allocUnsafe(raw.byteLength + blocks * (FRAMED_BLOCK - BLOCK));
  let at = 0;
  for (let done = start; done < end;) {
    if (done % BLOCK === 0) {
      const length = Math.min(BLOCK, size - done);
      writeBlockHeader(made, at, length, done + length === size);
      at += FRAMED_BLOCK - BLOCK;
    }
    const until = Math.min(end, (Math.floor(done / BLOCK) + 1) * BLOCK);
    made.set(raw.subarray(done - start, until - start), at);
    at += until - done;
    done = until;
  }
  return made;
}

/** Copied where somebody has this very member; the bytes are held against its digest, its length and what they unpack to. */
async function* deflated(
  holder: Holder,
  entry: PlacedEntry,
  { signal, allocate }: RecreateOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const copied = holder.kind === 'entry' && holder.entry.packedDigest === entry.packedDigest;
  const member = copied
    ? holder.source.read(holder.entry.offset, holder.entry.packed, { signal, allocate })
    : deflatedAgain(readHolder(holder, entry, { signal }), entry);
  const hash = createHash('sha256');
  let packed = 0;
  for await (const chunk of member) {
    hash.update(chunk);
    packed += chunk.byteLength;
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` === entry.packedDigest) {
    if (packed !== entry.packed) throw otherLength(entry, packed);
    if (copied) for await (const proved of readHolder(holder, entry, { signal })) void proved;
    return;
  }
  const from = holder.kind === 'entry' ? holder.source.name : holder.path;
  throw copied
    ? new CurlewError('DIGEST_MISMATCH', `${from}: ${holder.entry.path}: its packed bytes are damaged`, {
        hint: 'fetch the file again',
      })
    : new CurlewError('UNSUPPORTED', `${from}: ${entry.path} cannot be packed again as it was`, {
        hint: 'name a bundle that holds it with another --base',
      });
}

function otherLength({ path, packed }: PlacedEntry, found: number): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${path}: it is packed into ${found} bytes, not ${packed}`, {
    hint: 'the table of contents is not that of a bundle: fetch or make the delta again',
  });
}

async function* deflatedAgain(
  raw: AsyncIterable<Uint8Array>,
  { size, packedDigest }: PlacedEntry,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (size > MOST_AT_ONCE) {
    yield* deflatedByPieces(raw, size);
    return;
  }
  const parts: Uint8Array[] = [];
  for await (const chunk of raw) parts.push(chunk);
  const whole = Buffer.concat(parts);
  const atOnce = deflatedMember(whole);
  if (size <= PIECE || digestOf(atOnce) === packedDigest) yield atOnce;
  else yield* deflatedByPieces([whole], size);
}

async function* deflatedByPieces(
  raw: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let made: Uint8Array[] = [];
  const deflate = new Deflate({ level: 6 }, (chunk) => {
    made.push(chunk);
  });
  yield MEMBER_HEADER;
  let checksum = 0;
  for await (const piece of pieces(raw, PIECE)) {
    checksum = crc32(piece, checksum);
    // Its own copy: the deflater keeps what it is given.
    deflate.push(Uint8Array.from(piece), piece.byteLength < PIECE);
    yield* made;
    made = [];
  }
  // The builder sees the end of a file by reading nothing more.
  if (size % PIECE === 0) deflate.push(new Uint8Array(0), true);
  yield* made;
  yield memberTrailer(checksum, size);
}

/** The same bytes in pieces of exactly `length`, the last one as long as it is. */
async function* pieces(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array, void, undefined> {
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
