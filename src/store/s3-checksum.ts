/** Checksums that a server verifies on arrival: CRC-32 where it knows them, else the MD5 that all know. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { CompleteMultipartUploadCommandInput, CreateMultipartUploadCommandInput } from '@aws-sdk/client-s3';

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

/** Checksums as answers hold them. */
export interface AnsweredChecksums {
  readonly ChecksumType?: string | undefined;
  readonly ChecksumCRC32?: string | undefined;
  readonly ChecksumCRC32C?: string | undefined;
  readonly ChecksumCRC64NVME?: string | undefined;
}

/** What a store says of all bytes of an object; undefined when an answer tells nothing, or only of parts. */
export function wholeChecksum(answer: AnsweredChecksums): string | undefined {
  if (answer.ChecksumType === 'COMPOSITE') return undefined;
  const found = (
    [
      ['crc32', answer.ChecksumCRC32],
      ['crc32c', answer.ChecksumCRC32C],
      ['crc64nvme', answer.ChecksumCRC64NVME],
    ] as const
  ).find(([, value]) => value !== undefined && !value.includes('-'));
  return found === undefined ? undefined : `${found[0]}:${found[1]}`;
}

/** For a copy by parts: the server computes the checksum that the source has, and refuses the copy if it differs. */
export function demandedChecksum(checksum: string | undefined): {
  readonly begin: Pick<CreateMultipartUploadCommandInput, 'ChecksumAlgorithm' | 'ChecksumType'>;
  readonly complete: AnsweredChecksums & Pick<CompleteMultipartUploadCommandInput, 'ChecksumType'>;
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
