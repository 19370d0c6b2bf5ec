/** Server-side copies. */
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  UploadPartCopyCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import type { S3Connection } from './s3-connection.ts';
import { requiredChecksum, wholeChecksum, type ResponseChecksums } from './s3-checksum.ts';
import { completeOnce, isOurs } from './s3-complete.ts';
import { nameOf, s3Status } from './s3-error.ts';
import { needsPlainCopies, notePlainCopies } from './s3-probe.ts';
import { headObject, plainEtag, quotedEtag } from './s3-read.ts';
import type { Metadata, StoredObject } from './store.ts';

/** Limits in bytes. */
export interface CopyLimits {
  /** Maximum size of CopyObject and of one copied part. */
  readonly whole: number;
  /** Part size for larger objects. */
  readonly part: number;
}

export const COPY_LIMITS: CopyLimits = { whole: 5 * 1024 ** 3, part: 1024 ** 3 };
const CONCURRENCY = 4;

interface CopyJob {
  readonly connection: S3Connection;
  /** The bucket of the source. */
  readonly from: S3Connection;
  /** The source as found; the copy fails if it changes. */
  readonly source: StoredObject;
  readonly key: string;
  readonly limits: CopyLimits;
  readonly signal: AbortSignal;
}

function purposeOf({ connection, from, source, key, signal }: CopyJob) {
  return {
    doing: `copy ${from.address}/${source.key} to ${connection.address}/${key}`,
    permission: 's3:PutObject',
    signal,
  };
}

/** Request parameters for copying from an object with this etag. */
export function copySourceOf(from: S3Connection, { key, etag }: Pick<StoredObject, 'key' | 'etag'>) {
  const { Bucket, Key } = from.target(key);
  return {
    CopySource: [Bucket, ...Key.split('/')].map(encodeURIComponent).join('/'),
    CopySourceIfMatch: quotedEtag(etag),
  };
}

/** Copies up to `limits.whole` bytes, without a condition on the target. New metadata replaces the source's. */
export async function copyWhole(job: CopyJob, metadata: Metadata | undefined): Promise<StoredObject> {
  const { connection, source, key } = job;
  const { CopyObjectResult: result } = await connection.send(
    purposeOf(job),
    new CopyObjectCommand({
      ...connection.target(key),
      ...copySourceOf(job.from, source),
      ...(metadata === undefined ? {} : { MetadataDirective: 'REPLACE', Metadata: { ...metadata } }),
    }),
  );
  if (result?.ETag === undefined) {
    throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the response does not confirm the copy`);
  }
  return copiedObject(job, metadata ?? source.metadata, result);
}

function copiedObject(
  { key, source: { size } }: CopyJob,
  metadata: Metadata,
  response: ResponseChecksums & { readonly ETag?: string | undefined },
): StoredObject {
  const checksum = wholeChecksum(response);
  const object = { key, size, etag: plainEtag(response.ETag), metadata };
  return checksum === undefined ? object : { ...object, checksum };
}

interface PartsOptions {
  readonly metadata: Metadata;
  readonly ifNoneMatch: '*' | undefined;
}

/** MinIO computes no checksums of copied parts, and refuses them in an upload that has one. */
function isRefusedChecksum(error: unknown): boolean {
  return nameOf(error) === 'InvalidArgument' && s3Status(error) === 400;
}

/** A multipart copy, whose final request supports a condition. The source must not be empty. */
export async function copyByParts(job: CopyJob, options: PartsOptions): Promise<StoredObject> {
  const { connection, source, limits } = job;
  // Not every server computes the checksum of several copied parts correctly.
  const checksum = source.size <= limits.whole && !needsPlainCopies(connection) ? source.checksum : undefined;
  try {
    return await copyWith(job, checksum, options);
  } catch (error) {
    if (checksum === undefined || !isRefusedChecksum(error)) throw error;
    notePlainCopies(connection);
    return copyWith(job, undefined, options);
  }
}

async function copyWith(
  job: CopyJob,
  checksum: string | undefined,
  { metadata, ifNoneMatch }: PartsOptions,
): Promise<StoredObject> {
  const { connection, source, key, signal } = job;

  const target = connection.target(key);
  const required = requiredChecksum(checksum);
  const { UploadId } = await connection.send(
    purposeOf(job),
    new CreateMultipartUploadCommand({ ...target, ...required.begin, Metadata: { ...metadata } }),
  );
  const upload = { ...target, UploadId };
  try {
    const Parts = await copyParts(job, upload, checksum === undefined ? undefined : isRefusedChecksum);
    const input = { ...upload, ...required.complete, MultipartUpload: { Parts }, IfNoneMatch: ifNoneMatch };
    const done = await completeOnce({ connection, purpose: { ...purposeOf(job), signal }, input }, async () => {
      const existing = await headObject(connection, key, signal);
      return existing !== undefined && isOurs(existing, { size: source.size, metadata }) ? existing : undefined;
    });
    return 'metadata' in done ? done : copiedObject(job, metadata, done);
  } catch (error) {
    // Copying again is cheap, so nothing is kept. Ignores failures here, since the original error is thrown.
    await connection
      .send({ ...purposeOf(job), signal: AbortSignal.timeout(10_000) }, new AbortMultipartUploadCommand(upload))
      .catch(() => undefined);
    throw error;
  }
}

async function copyParts(
  job: CopyJob,
  upload: ReturnType<S3Connection['target']> & { readonly UploadId: string | undefined },
  isExpected: ((error: unknown) => boolean) | undefined,
): Promise<CompletedPart[]> {
  const { connection, source } = job;
  const { whole, part } = job.limits;
  const single = source.size <= whole;
  const count = single ? 1 : Math.ceil(source.size / part);
  return mapLimited(
    Array.from({ length: count }, (_, index) => index),
    async (index, { signal }) => {
      const last = Math.min((index + 1) * part, source.size) - 1;
      const range = single ? {} : { CopySourceRange: `bytes=${index * part}-${last}` };
      const input = { ...upload, ...copySourceOf(job.from, source), ...range, PartNumber: index + 1 };
      const { CopyPartResult: result } = await connection.send(
        { ...purposeOf(job), signal },
        new UploadPartCopyCommand(input),
        isExpected,
      );
      if (result?.ETag === undefined) {
        throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the response does not confirm the copy`);
      }
      const { ETag, ChecksumCRC32, ChecksumCRC64NVME } = result;
      return { PartNumber: index + 1, ETag, ChecksumCRC32, ChecksumCRC64NVME };
    },
    { width: CONCURRENCY, signal: job.signal },
  );
}
