/** Checksums that a server verifies on arrival: CRC-32 if supported, otherwise MD5, which all servers support. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { CompleteMultipartUploadCommandInput, CreateMultipartUploadCommandInput } from '@aws-sdk/client-s3';

export type ChecksumKind = 'crc32' | 'md5';

export type Checksum = { readonly ChecksumCRC32: string } | { readonly ContentMD5: string };

/** A checksum in the format of a request. */
export function checksumOf(data: Uint8Array, kind: ChecksumKind): Checksum {
  if (kind === 'md5') return { ContentMD5: createHash('md5').update(data).digest('base64') };
  return { ChecksumCRC32: crc32Base64(data) };
}

function crc32Base64(data: Uint8Array): string {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(data));
  return four.toString('base64');
}

/** Checksums in a response. */
export interface ResponseChecksums {
  readonly ChecksumType?: string | undefined;
  readonly ChecksumCRC32?: string | undefined;
  readonly ChecksumCRC32C?: string | undefined;
  readonly ChecksumCRC64NVME?: string | undefined;
}

/** The checksum of all bytes of an object; undefined if a response has none, or only checksums of parts. */
export function wholeChecksum(response: ResponseChecksums): string | undefined {
  if (response.ChecksumType === 'COMPOSITE') return undefined;
  const checksum = (
    [
      ['crc32', response.ChecksumCRC32],
      ['crc32c', response.ChecksumCRC32C],
      ['crc64nvme', response.ChecksumCRC64NVME],
    ] as const
  ).find(([, value]) => value !== undefined && !value.includes('-'));
  return checksum === undefined ? undefined : `${checksum[0]}:${checksum[1]}`;
}

/** For a multipart copy: the server computes the same kind of checksum as the source's, and rejects a copy that differs. */
export function requiredChecksum(checksum: string | undefined): {
  readonly begin: Pick<CreateMultipartUploadCommandInput, 'ChecksumAlgorithm' | 'ChecksumType'>;
  readonly complete: ResponseChecksums & Pick<CompleteMultipartUploadCommandInput, 'ChecksumType'>;
} {
  const [name, value] = checksum?.split(':') ?? [];
  if (name === 'crc32') {
    const type = { ChecksumType: 'FULL_OBJECT' } as const;
    return { begin: { ...type, ChecksumAlgorithm: 'CRC32' }, complete: { ...type, ChecksumCRC32: value } };
  }
  if (name === 'crc64nvme') {
    const type = { ChecksumType: 'FULL_OBJECT' } as const;
    return { begin: { ...type, ChecksumAlgorithm: 'CRC64NVME' }, complete: { ...type, ChecksumCRC64NVME: value } };
  }
  return { begin: {}, complete: {} };
}

/** A part that the server has. */
export interface HeldPart {
  readonly size: number;
  readonly etag: string;
  readonly crc32: string | undefined;
}

/** True if the part has these bytes, judged by its CRC-32, or by an ETag that is their MD5. */
export function isSamePart(data: Uint8Array, held: HeldPart): boolean {
  if (held.size !== data.byteLength) return false;
  if (held.crc32 !== undefined) return held.crc32 === crc32Base64(data);
  return held.etag === createHash('md5').update(data).digest('hex');
}
