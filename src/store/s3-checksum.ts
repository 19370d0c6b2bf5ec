/** Checksums that a server verifies on arrival: CRC-32 where it knows them, else the MD5 that all know. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type ChecksumKind = 'crc32' | 'md5';

export type Checksum = { readonly ChecksumCRC32: string } | { readonly ContentMD5: string };

/** In the form that a request wants. */
export function checksumOf(data: Uint8Array, kind: ChecksumKind): Checksum {
  if (kind === 'md5') return { ContentMD5: createHash('md5').update(data).digest('base64') };
  return { ChecksumCRC32: crc32Base64(data) };
}

function crc32Base64(data: Uint8Array): string {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(data));
  return four.toString('base64');
}

/** What a server says of a part that it holds. */
export interface HeldPart {
  readonly size: number;
  readonly etag: string;
  readonly crc32: string | undefined;
}

/** True if the part holds these bytes: by its CRC-32, or by an ETag that is their MD5. */
export function isSamePart(data: Uint8Array, held: HeldPart): boolean {
  if (held.size !== data.byteLength) return false;
  if (held.crc32 !== undefined) return held.crc32 === crc32Base64(data);
  return held.etag === createHash('md5').update(data).digest('hex');
}
