/** Copies within a bucket, whose bytes stay on the server. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  UploadPartCopyCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3';
import { mapLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import type { S3Connection } from './s3-connection.ts';
import { plainEtag, quotedEtag } from './s3-read.ts';
import type { Metadata, StoredObject } from './store.ts';

/** What CopyObject and one copied part may have at most. */
export const COPY_LIMIT = 5 * 1024 ** 3;
const PART = 1024 ** 3;
const PARTS_AT_ONCE = 4;

interface CopyJob {
  readonly connection: S3Connection;
  /** Where the source lies. */
  readonly from: S3Connection;
  /** As it is now; the copy fails when it changes. */
  readonly source: StoredObject;
  readonly key: string;
  readonly signal: AbortSignal;
}

function purposeOf({ connection, from, source, key, signal }: CopyJob) {
  return {
    doing: `copy ${from.address}/${source.key} to ${connection.address}/${key}`,
    permission: 's3:PutObject',
    signal,
  };
}

function copySource({ from, source }: CopyJob) {
  const { Bucket, Key } = from.target(source.key);
  return {
    CopySource: [Bucket, ...Key.split('/')].map(encodeURIComponent).join('/'),
    CopySourceIfMatch: quotedEtag(source.etag),
  };
}

/** At most {@link COPY_LIMIT}, without a condition on the target. New metadata takes the place of the source's. */
export async function copyWhole(job: CopyJob, metadata: Metadata | undefined): Promise<StoredObject> {
  const { connection, source, key } = job;
  const { CopyObjectResult: result } = await connection.call(purposeOf(job), (options) =>
    connection.client.send(
      new CopyObjectCommand({
        ...connection.target(key),
        ...copySource(job),
        ...(metadata === undefined ? {} : { MetadataDirective: 'REPLACE', Metadata: { ...metadata } }),
      }),
      options,
    ),
  );
  if (result?.ETag === undefined) {
    throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the answer does not say that it was done`);
  }
  return { key, size: source.size, etag: plainEtag(result.ETag), metadata: metadata ?? source.metadata };
}

/** By parts, so that the request that names the copy can carry a condition. The source is not empty. */
export async function copyByParts(
  job: CopyJob,
  { metadata, ifNoneMatch }: { readonly metadata: Metadata; readonly ifNoneMatch: '*' | undefined },
): Promise<StoredObject> {
  const { connection, source, key, signal } = job;
  const { client, call } = connection;
  const target = connection.target(key);
  const { UploadId } = await call(purposeOf(job), (options) =>
    client.send(new CreateMultipartUploadCommand({ ...target, Metadata: { ...metadata } }), options),
  );
  const upload = { ...target, UploadId };
  try {
    const Parts = await copyParts(job, upload);
    const { ETag } = await call({ ...purposeOf(job), signal }, (options) =>
      client.send(
        new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts }, IfNoneMatch: ifNoneMatch }),
        options,
      ),
    );
    return { key, size: source.size, etag: plainEtag(ETag), metadata };
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
  const single = source.size <= COPY_LIMIT;
  const count = single ? 1 : Math.ceil(source.size / PART);
  return mapLimited(
    Array.from({ length: count }, (_, index) => index),
    async (index, { signal }) => {
      const last = Math.min((index + 1) * PART, source.size) - 1;
      const range = single ? {} : { CopySourceRange: `bytes=${index * PART}-${last}` };
      const input = { ...upload, ...copySource(job), ...range, PartNumber: index + 1 };
      const { CopyPartResult: result } = await connection.call({ ...purposeOf(job), signal }, (options) =>
        connection.client.send(new UploadPartCopyCommand(input), options),
      );
      if (result?.ETag === undefined) {
        throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the answer does not say that it was done`);
      }
      return { PartNumber: index + 1, ETag: result.ETag };
    },
    { width: PARTS_AT_ONCE, signal: job.signal },
  );
}
