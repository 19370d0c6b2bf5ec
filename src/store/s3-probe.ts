/**
 * What a server honours, found out once per process by trying it on one small object that stays. AWS is not asked: what
 * it does is documented.
 */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCopyCommand,
  type PutObjectCommandInput,
  type UploadPartCopyCommandInput,
} from '@aws-sdk/client-s3';
import type { S3Connection } from './s3-connection.ts';
import { checksumOf, type ChecksumKind } from './s3-checksum.ts';
import { nameOf, statusOf } from './s3-error.ts';
import { HIDDEN } from './key.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';

export interface Abilities {
  /** The checksum that is verified on arrival. */
  readonly checksum: ChecksumKind;
  /** Conditions of a plain write are honoured. */
  readonly conditions: boolean;
}

export interface MultipartAbilities {
  /** Conditions of the request that completes an upload are honoured. */
  readonly conditions: boolean;
  /** Parts can be copied from other objects. */
  readonly partCopy: boolean;
  /** Conditions on the source of a copy are honoured. */
  readonly sourceConditions: boolean;
}

const KEY = `${HIDDEN}/probe`;
const OTHER_ETAG = `"${'0'.repeat(32)}"`;
const BODY = Buffer.from('what this server honours is tried on this object\n');

/** What is known of servers and their buckets, by `nameIn`. */
const known = createSingleFlightCache<Abilities>();
const knownMultipart = createSingleFlightCache<MultipartAbilities>();

function nameIn({ endpoint, bucket, prefix }: S3Connection): string {
  return `${endpoint ?? ''} ${bucket} ${prefix}`;
}

export async function probe(connection: S3Connection, signal: AbortSignal): Promise<Abilities> {
  if (connection.endpoint === undefined) return { checksum: 'crc32', conditions: true };
  return known.get(nameIn(connection), async () => ask(connection, signal));
}

export async function probeMultipart(connection: S3Connection, signal: AbortSignal): Promise<MultipartAbilities> {
  if (connection.endpoint === undefined) return { conditions: true, partCopy: true, sourceConditions: true };
  return knownMultipart.get(nameIn(connection), async () => {
    // Who ignores conditions of plain writes ignores them here too: copying as a whole is enough then.
    const { conditions } = await probe(connection, signal);
    return conditions ? askMultipart(connection, signal) : NEITHER;
  });
}

const NEITHER: MultipartAbilities = { conditions: false, partCopy: false, sourceConditions: false };

type Answer = 'done' | 'refused' | 'rejected';

function isCondition(error: unknown): boolean {
  return statusOf(error) === 412 || statusOf(error) === 409;
}

/** Answers that speak of the request rather than of rights, bucket or load. */
function isRejection(error: unknown): boolean {
  const status = statusOf(error);
  if (nameOf(error) === 'NoSuchBucket' || nameOf(error) === 'AuthorizationHeaderMalformed') return false;
  return isCondition(error) || status === 400 || status === 404 || status === 405 || status === 501;
}

/** Some servers have an internal error where they were not made for a request. */
function isUnable(error: unknown): boolean {
  return isRejection(error) || nameOf(error) === 'InternalError';
}

async function attempt(connection: S3Connection, signal: AbortSignal, input: Partial<PutObjectCommandInput>) {
  const doing = `try what ${connection.address} honours`;
  try {
    await connection.call(
      { doing, permission: 's3:PutObject', signal },
      (options) =>
        connection.client.send(new PutObjectCommand({ ...connection.target(KEY), Body: BODY, ...input }), options),
      isRejection,
    );
    return 'done' satisfies Answer;
  } catch (error) {
    if (!isRejection(error)) throw error;
    return isCondition(error) ? ('refused' satisfies Answer) : ('rejected' satisfies Answer);
  }
}

async function ask(connection: S3Connection, signal: AbortSignal): Promise<Abilities> {
  const put = (input: Partial<PutObjectCommandInput>) => attempt(connection, signal, input);
  // The object is there after the first of these, so the second has to be refused.
  const first = await put({ IfNoneMatch: '*', ...checksumOf(BODY, 'md5') });
  const second = first === 'done' ? await put({ IfNoneMatch: '*', ...checksumOf(BODY, 'md5') }) : first;
  const swapped = await put({ IfMatch: OTHER_ETAG, ...checksumOf(BODY, 'md5') });
  const right = await put(checksumOf(BODY, 'crc32'));
  const wrong = right === 'done' ? await put(checksumOf(Buffer.from('other bytes'), 'crc32')) : 'done';
  return {
    conditions: second === 'refused' && swapped === 'refused',
    checksum: wrong === 'rejected' ? 'crc32' : 'md5',
  };
}

async function isRefused(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (!isUnable(error)) throw error;
    return isCondition(error);
  }
}

/** Copies the object onto itself as the part of an upload that must not be completed. */
async function askMultipart(connection: S3Connection, signal: AbortSignal): Promise<MultipartAbilities> {
  const purpose = { doing: `try what ${connection.address} honours`, permission: 's3:PutObject', signal };
  const { client, target } = connection;
  const where = target(KEY);
  await attempt(connection, signal, {});
  const { UploadId } = await connection.call(purpose, (options) =>
    client.send(new CreateMultipartUploadCommand(where), options),
  );
  const upload = { ...where, UploadId };
  const part = { ...upload, PartNumber: 1, CopySource: `${where.Bucket}/${where.Key}` };
  const copyPart = async (input: UploadPartCopyCommandInput) =>
    connection.call(purpose, (options) => client.send(new UploadPartCopyCommand(input), options), isUnable);
  let isDone = false;
  let sourceConditions = false;
  try {
    const { ETag } = (await copyPart(part)).CopyPartResult ?? {};
    if (ETag === undefined) return NEITHER;
    sourceConditions = await isRefused(copyPart({ ...part, CopySourceIfMatch: OTHER_ETAG }));
    const parts = { Parts: [{ PartNumber: 1, ETag }] };
    const input = { ...upload, MultipartUpload: parts, IfNoneMatch: '*' };
    await connection.call(
      purpose,
      (options) => client.send(new CompleteMultipartUploadCommand(input), options),
      isRejection,
    );
    isDone = true;
    return { conditions: false, partCopy: true, sourceConditions };
  } catch (error) {
    if (!isUnable(error)) throw error;
    return { conditions: isCondition(error), partCopy: isCondition(error), sourceConditions };
  } finally {
    if (!isDone) {
      await connection
        .call(purpose, (options) => client.send(new AbortMultipartUploadCommand(upload), options))
        .catch(() => undefined);
    }
  }
}
