/** Reads an archive from its end: the index, and any file by range. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw, crc32 } from 'node:zlib';
import { wholeFile, type Bytes } from '../../core/bytes.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import { asError, CurlewError, errnoOf, errorAbout, fileError } from '../../core/errors.ts';
import { openRegular } from '../../platform/files/hash-file.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from './entry.ts';
import { isMemberHeader, MEMBER_HEADER, MEMBER_TRAILER, memberTrailer, sameBytes, unpackMember } from './member.ts';
import { unframed } from './stored-member.ts';
import { damaged, FOOTER_SIZE, parseFooter, parseToc, tocText } from './toc.ts';

const READ_SIZE = 1 << 20;

/** A file on disk as a source of ranges. Dispose of it to close the file. */
export async function openFileSource(path: string): Promise<RangeSource & AsyncDisposable> {
  const { file, size } = await openRegular(path);
  return {
    ...fileSource(file, path, size),
    [Symbol.asyncDispose]: async () => {
      await file.close();
    },
  };
}

/** An open file as a source; the caller closes the file. `path` is for messages. */
export function fileSource(file: FileHandle, path: string, size: number): RangeSource {
  return {
    name: path,
    size,
    async *read(offset, length, { signal, allocate = (size: number) => Buffer.allocUnsafe(size) }) {
      for (let done = 0; done < length;) {
        signal.throwIfAborted();
        const chunk = allocate(Math.min(READ_SIZE, length - done));
        const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, offset + done).catch((error: unknown) => {
          throw fileError(`read ${path}`, error);
        });
        if (bytesRead === 0) throw new CurlewError('PACKAGE_INVALID', `${path}: ends before byte ${offset + length}`);
        done += bytesRead;
        yield chunk.subarray(0, bytesRead);
      }
    },
  };
}

/** Bytes in memory as a source of ranges. */
export function memorySource(name: string, bytes: Uint8Array): RangeSource {
  return {
    name,
    size: bytes.byteLength,
    async *read(offset, length) {
      if (offset + length > bytes.byteLength) throw new CurlewError('PACKAGE_INVALID', `${name}: ends too early`);
      yield bytes.subarray(offset, offset + length);
    },
  };
}

/** All bytes of a range, in memory: only for lengths that are already limited. */
export async function readRange(
  source: RangeSource,
  offset: number,
  length: number,
  { signal }: Cancellable,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of source.read(offset, length, { signal })) parts.push(chunk);
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
}

interface IndexOptions extends Cancellable {
  /** Called with the size of the TOC in bytes before it is read; its errors are thrown. */
  readonly admit?: ((bytes: number) => void) | undefined;
}

/** Reads footer and TOC: two small ranges, regardless of the archive's size. Damage is `PACKAGE_INVALID`. */
export async function readIndex(source: RangeSource, options: IndexOptions): Promise<ArchiveIndex> {
  const { member, tocOffset } = await readTocMember(source, options);
  return parseToc(member, tocOffset, source.size, source.name);
}

/** The TOC's JSON text, which signatures cover, and which `tar -xO` prints. Damage is `PACKAGE_INVALID`. */
export async function readTocText(source: RangeSource, { signal }: Cancellable): Promise<Uint8Array> {
  const { member } = await readTocMember(source, { signal });
  return tocText(member, source.name);
}

/** The bytes of the TOC's member, which end at the footer; only the footer is checked. */
export async function readTocMember(
  source: RangeSource,
  { signal, admit }: IndexOptions,
): Promise<{ readonly member: Uint8Array; readonly tocOffset: number }> {
  const { name, size } = source;
  if (size < FOOTER_SIZE + 1) throw damaged(name, size === 0 ? 'it is empty' : 'too short to be a package');
  const tail = Math.min(size, 64 << 10);
  const last = await readRange(source, size - tail, tail, { signal });
  const tocOffset = parseFooter(last.subarray(tail - FOOTER_SIZE), size, name);
  admit?.(size - FOOTER_SIZE - tocOffset);
  const inTail = tocOffset - (size - tail);
  const member =
    inTail >= 0
      ? last.subarray(inTail, tail - FOOTER_SIZE)
      : await readRange(source, tocOffset, size - FOOTER_SIZE - tocOffset, { signal });
  return { member, tocOffset };
}

/** The entry of the index with this full name, if any; for a hard link, the linked file. */
export function findEntry(index: ArchiveIndex, path: string): PlacedEntry | undefined {
  const match = index.entries.find((entry) => entry.path === path);
  if (match?.linkTo === undefined) return match;
  return index.entries.find((entry) => entry.path === match.linkTo);
}

/** The archive that an entry comes from, for messages. */
export function nameOf({ name, nameAt }: RangeSource, { offset }: PlacedEntry): string {
  return nameAt?.(offset) ?? name;
}

/**
 * The unpacked bytes of an entry's payload, checked while streaming: framing, checksum, size and digest. An error follows the
 * last good chunk, so use the bytes only after the stream has ended. Hard links have no payload.
 */
export async function* readPayload(source: RangeSource, entry: PlacedEntry, { signal }: Cancellable): Bytes {
  const damaged = errorAbout(
    'DIGEST_MISMATCH',
    `${nameOf(source, entry)}: ${entry.path}`,
    'the file is damaged: fetch or build it again',
  );
  if (entry.packed === 0) return;
  const packed = source.read(entry.offset, entry.packed, { signal });
  const raw = entry.stored ? unframed(packed, entry.size, damaged) : inflated(packed, entry, damaged);
  const hash = createHash('sha256');
  for await (const chunk of raw) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` !== entry.digest) throw damaged('the digest does not match');
}

async function* inflated(
  packed: AsyncIterable<Uint8Array>,
  entry: PlacedEntry,
  damaged: (what: string) => CurlewError,
): Bytes {
  if (entry.packed <= READ_SIZE && entry.size <= READ_SIZE) {
    const parts: Uint8Array[] = [];
    for await (const chunk of packed) parts.push(chunk);
    const raw = unpackMember(Buffer.concat(parts), entry.size);
    if (typeof raw === 'string') throw damaged(raw);
    if (raw.byteLength !== entry.size) throw damaged('the size does not match');
    yield raw;
    return;
  }
  const inflate = createInflateRaw();
  const trailer: Uint8Array[] = [];
  const feeding = pipeline(memberBody(packed, entry.packed, trailer, damaged), inflate);
  // A failure of the feeder destroys the stream and is thrown by the loop below; it is awaited again after the loop.
  feeding.catch(() => undefined);
  let size = 0;
  let checksum = 0;
  try {
    for await (const chunk of inflate as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > entry.size) throw damaged('it unpacks to more bytes than its size');
      checksum = crc32(chunk, checksum);
      yield chunk;
    }
  } catch (error) {
    if (errnoOf(error)?.startsWith('Z_') === true) throw damaged(asError(error).message);
    throw error;
  } finally {
    inflate.destroy();
    // A caller that stops reading early may then close the source.
    await feeding.catch(() => undefined);
  }
  await feeding;
  const tail = Buffer.concat(trailer);
  if (size !== entry.size) throw damaged('the size does not match');
  if (inflate.bytesWritten !== entry.packed - MEMBER_HEADER.length - tail.byteLength)
    throw damaged('it contains hidden bytes');
  if (!sameBytes(tail, memberTrailer(checksum, size))) throw damaged('a gzip checksum does not match');
}

/** The bytes between header and trailer of a member of `length` bytes; appends the trailer to `trailer`. */
async function* memberBody(
  packed: AsyncIterable<Uint8Array>,
  length: number,
  trailer: Uint8Array[],
  damaged: (what: string) => CurlewError,
): Bytes {
  const header = new Uint8Array(MEMBER_HEADER.length);
  const bodyEnd = length - MEMBER_TRAILER;
  let at = 0;
  for await (const chunk of packed) {
    const bodyAt = Math.max(0, MEMBER_HEADER.length - at);
    const endAt = Math.max(0, bodyEnd - at);
    if (bodyAt > 0) {
      header.set(chunk.subarray(0, bodyAt), at);
      if (chunk.byteLength >= bodyAt && !isMemberHeader(header)) throw damaged('a gzip member header is damaged');
    }
    const body = chunk.subarray(bodyAt, endAt);
    if (chunk.byteLength > endAt) trailer.push(chunk.subarray(endAt));
    at += chunk.byteLength;
    if (body.byteLength > 0) yield body;
  }
}

/** The unpacked, verified bytes of an entry with a payload, in memory; an error for more than `limit` bytes. */
export async function readFile(
  source: RangeSource,
  entry: PlacedEntry,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  return wholeFile(nameOf(source, entry), entry, limit, () => readPayload(source, entry, { signal }));
}
