/**
 * gzip members, the building blocks of format 1: RFC 1952 framing around RFC 1951 data. A *stored* member has blocks of
 * exactly 65,535 bytes, so that file offsets can be computed from raw offsets; a *deflated* one comes from a pinned deflater
 * whose output does not depend on the Node version or the processor.
 */
import { crc32, inflateRawSync } from 'node:zlib';
import { deflateSync } from 'fflate';

/** Size limit of a stored block in bytes (RFC 1951, 3.2.4). */
export const BLOCK = 65_535;
const BLOCK_HEADER = 5;
export const FRAMED_BLOCK: number = BLOCK + BLOCK_HEADER;

/** No name, no time, no extra field, unknown system: a member's header does not depend on where it was created. */
export const MEMBER_HEADER: Uint8Array = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
export const MEMBER_TRAILER = 8;

/** Size of the stored member that frames `size` raw bytes; `size` must be greater than 0. */
export function storedMemberSize(size: number): number {
  return MEMBER_HEADER.length + Math.ceil(size / BLOCK) * BLOCK_HEADER + size + MEMBER_TRAILER;
}

/** Writes the header of a stored block into `target`. */
export function writeBlockHeader(target: Uint8Array, at: number, length: number, final: boolean): void {
  target[at] = final ? 1 : 0;
  target[at + 1] = length & 0xff;
  target[at + 2] = length >> 8;
  target[at + 3] = ~length & 0xff;
  target[at + 4] = (~length >> 8) & 0xff;
}

/** True if `source` has a stored block header for exactly this length at `at`. */
export function isBlockHeader(source: Uint8Array, at: number, length: number, final: boolean): boolean {
  return (
    source[at] === (final ? 1 : 0) &&
    source[at + 1] === (length & 0xff) &&
    source[at + 2] === length >> 8 &&
    source[at + 3] === (~length & 0xff) &&
    source[at + 4] === ((~length >> 8) & 0xff)
  );
}

/** CRC32 and size of the raw bytes, as at the end of a member. */
export function memberTrailer(checksum: number, size: number): Uint8Array {
  const trailer = new Uint8Array(MEMBER_TRAILER);
  const view = new DataView(trailer.buffer);
  view.setUint32(0, checksum, true);
  view.setUint32(4, size % 2 ** 32, true);
  return trailer;
}

/** A whole stored member in memory. */
export function storedMember(raw: Uint8Array): Uint8Array {
  const member = new Uint8Array(storedMemberSize(raw.byteLength));
  member.set(MEMBER_HEADER, 0);
  let at = MEMBER_HEADER.length;
  for (let start = 0; start < raw.byteLength; start += BLOCK) {
    const block = raw.subarray(start, start + BLOCK);
    writeBlockHeader(member, at, block.byteLength, start + BLOCK >= raw.byteLength);
    member.set(block, at + BLOCK_HEADER);
    at += BLOCK_HEADER + block.byteLength;
  }
  member.set(memberTrailer(crc32(raw), raw.byteLength), at);
  return member;
}

/** A whole deflated member in memory. The level is part of the format, since it determines the bytes. */
export function deflatedMember(raw: Uint8Array): Uint8Array {
  const body = deflateSync(raw, { level: 6 });
  const member = new Uint8Array(MEMBER_HEADER.length + body.byteLength + MEMBER_TRAILER);
  member.set(MEMBER_HEADER, 0);
  member.set(body, MEMBER_HEADER.length);
  member.set(memberTrailer(crc32(raw), raw.byteLength), MEMBER_HEADER.length + body.byteLength);
  return member;
}

/** True if the bytes begin with the one member header of this format, which has no field that could hide bytes. */
export function isMemberHeader(bytes: Uint8Array): boolean {
  return MEMBER_HEADER.every((value, index) => bytes[index] === value);
}

/**
 * Unpacks bytes that are exactly one member of this format, into at most `limit` bytes. Returns the problem as text if they
 * are not.
 */
export function unpackMember(packed: Uint8Array, limit: number): Uint8Array | string {
  if (!isMemberHeader(packed)) return 'a gzip member header is damaged or has extra fields';
  try {
    const options = { info: true, maxOutputLength: Math.max(1, limit) } as const;
    // With `info`, zlib also returns the engine, whose count of consumed bytes shows where the member ends.
    const inflated = inflateRawSync(packed.subarray(MEMBER_HEADER.length), options) as unknown as InflateInfo;
    const trailer = packed.subarray(MEMBER_HEADER.length + inflated.engine.bytesWritten);
    const expected = memberTrailer(crc32(inflated.buffer), inflated.buffer.byteLength);
    return sameBytes(trailer, expected) ? inflated.buffer : 'a gzip checksum does not match';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The raw bytes of a stored member in memory, or undefined if its framing is not that of this format. */
export function unframeMember(member: Uint8Array): Uint8Array | undefined {
  const body = member.byteLength - MEMBER_HEADER.length - MEMBER_TRAILER;
  const size = body - Math.ceil(body / FRAMED_BLOCK) * BLOCK_HEADER;
  if (size <= 0 || storedMemberSize(size) !== member.byteLength || !isMemberHeader(member)) return undefined;
  const raw = Buffer.allocUnsafe(size);
  for (let done = 0, at = MEMBER_HEADER.length; done < size; done += BLOCK, at += FRAMED_BLOCK) {
    const length = Math.min(BLOCK, size - done);
    if (!isBlockHeader(member, at, length, done + length === size)) return undefined;
    raw.set(member.subarray(at + BLOCK_HEADER, at + BLOCK_HEADER + length), done);
  }
  const trailer = member.subarray(member.byteLength - MEMBER_TRAILER);
  return sameBytes(trailer, memberTrailer(crc32(raw), size)) ? raw : undefined;
}

interface InflateInfo {
  readonly buffer: Uint8Array;
  readonly engine: { readonly bytesWritten: number };
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
