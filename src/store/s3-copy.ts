/** Copies within a bucket, whose bytes stay on the server. */
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  UploadPartCopyCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import type { S3Connection } from './s3-connection.ts';
import { demandedChecksum, wholeChecksum, type AnsweredChecksums } from './s3-checksum.ts';
import { completeOnce, isOurs } from './s3-complete.ts';
import { headObject, plainEtag, quotedEtag } from './s3-read.ts';
import type { Metadata, StoredObject } from './store.ts';

/** Bytes. */
export interface CopyLimits {
  /** What CopyObject and one copied part may have at most. */
  readonly whole: number;
  /** Parts of what is larger. */
  readonly part: number;
}

export const COPY_LIMITS: CopyLimits = { whole: 5 * 1024 ** 3, part: 1024 ** 3 };
const PARTS_AT_ONCE = 4;

interface CopyJob {
  readonly connection: S3Connection;
  /** Where the source lies. */
  readonly from: S3Connection;
  /** As it is now; the copy fails when it changes. */
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

/** Words of a request that copies from an object as long as it has this etag. */
export function copySourceOf(from: S3Connection, { key, etag }: Pick<StoredObject, 'key' | 'etag'>) {
  const { Bucket, Key } = from.target(key);
  return {
    CopySource: [Bucket, ...Key.split('/')].map(encodeURIComponent).join('/'),
    CopySourceIfMatch: quotedEtag(etag),
  };
}

/** At most what one copy may have, without a condition on the target. New metadata takes the place of the source's. */
export async function copyWhole(job: CopyJob, metadata: Metadata | undefined): Promise<StoredObject> {
  const { connection, source, key } = job;
  const { CopyObjectResult: result } = await connection.call(purposeOf(job), (options) =>
    connection.client.send(
      new CopyObjectCommand({
        ...connection.target(key),
        ...copySourceOf(job.from, source),
        ...(metadata === undefined ? {} : { MetadataDirective: 'REPLACE', Metadata: { ...metadata } }),
      }),
      options,
    ),
  );
  if (result?.ETag === undefined) {
    throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the answer does not say that it was done`);
  }
  return madeOf(job, metadata ?? source.metadata, result);
}

function madeOf(
  { key, source: { size } }: CopyJob,
  metadata: Metadata,
  answer: AnsweredChecksums & { readonly ETag?: string | undefined },
): StoredObject {
  const checksum = wholeChecksum(answer);
  const object = { key, size, etag: plainEtag(answer.ETag), metadata };
  return checksum === undefined ? object : { ...object, checksum };
}

/** By parts, so that the request that names the copy can carry a condition. The source is not empty. */
export async function copyByParts(
  job: CopyJob,
  { metadata, ifNoneMatch }: { readonly metadata: Metadata; readonly ifNoneMatch: '*' | undefined },
): Promise<StoredObject> {
  const { connection, source, key, signal } = job;
  const { client, call } = connection;
  const target = connection.target(key);
  // Of several copied parts, not every server computes the whole rightly.
  const demanded = demandedChecksum(source.size <= job.limits.whole ? source.checksum : undefined);
  const { UploadId } = await call(purposeOf(job), (options) =>
    client.send(new CreateMultipartUploadCommand({ ...target, ...demanded.begin, Metadata: { ...metadata } }), options),
  );
  const upload = { ...target, UploadId };
  try {
    const Parts = await copyParts(job, upload);
    const input = { ...upload, ...demanded.complete, MultipartUpload: { Parts }, IfNoneMatch: ifNoneMatch };
    const done = await completeOnce({ connection, purpose: { ...purposeOf(job), signal }, input }, async () => {
      const there = await headObject(connection, key, signal);
      return there !== undefined && isOurs(there, { size: source.size, metadata }) ? there : undefined;
    });
    return 'metadata' in done ? done : madeOf(job, metadata, done);
  } catch (error) {
    // A copy is quickly begun again: nothing is kept. What brought us here is what the user is told.
    await call({ ...purposeOf(job), signal: AbortSignal.timeout(10_000) }, (options) =>
      client.send(new AbortMultipartUploadCommand(upload), options),
    ).catch(() => undefined);
    throw error;
  }
}

async function copyParts(
  job: CopyJob,
  upload: ReturnType<S3Connection['target']> & { readonly UploadId: string | undefined },
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
      const { CopyPartResult: result } = await connection.call({ ...purposeOf(job), signal }, (options) =>
        connection.client.send(new UploadPartCopyCommand(input), options),
      );
      if (result?.ETag === undefined) {
        throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the answer does not say that it was done`);
      }
      const { ETag, ChecksumCRC32, ChecksumCRC64NVME } = result;
      return { PartNumber: index + 1, ETag, ChecksumCRC32, ChecksumCRC64NVME };
    },
    { width: PARTS_AT_ONCE, signal: job.signal },
  );
}
