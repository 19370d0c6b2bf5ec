/**
 * Detects which features a server supports, once per process, with requests for one small object that is kept. AWS is not
 * probed, since its behavior is documented.
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
import { errnoOf } from '../../core/errors.ts';
import type { S3Connection } from './s3-connection.ts';
import { checksumOf, type ChecksumKind } from './s3-checksum.ts';
import { isRefusedCondition, nameOf, s3Status } from './s3-error.ts';
import { HIDDEN } from './key.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

export interface Abilities {
  /** The checksum that the server verifies on arrival. */
  readonly checksum: ChecksumKind;
  /** Conditional PutObject is supported. */
  readonly conditions: boolean;
}

export interface MultipartAbilities {
  /** Conditional CompleteMultipartUpload is supported. */
  readonly conditions: boolean;
  /** UploadPartCopy is supported. */
  readonly partCopy: boolean;
  /** Conditions on the source of a copy are supported. */
  readonly sourceConditions: boolean;
}

const KEY = `${HIDDEN}/probe`;
const OTHER_ETAG = `"${'0'.repeat(32)}"`;
const BODY = Buffer.from('curlew uses this object to detect which features the server supports\n');

/** Results by {@link cacheKey}. */
const known = createSingleFlightCache<Abilities>();
const knownMultipart = createSingleFlightCache<MultipartAbilities>();

function cacheKey({ endpoint, bucket, prefix }: S3Connection): string {
  return `${endpoint ?? ''} ${bucket} ${prefix}`;
}

export async function probe(connection: S3Connection, signal: AbortSignal): Promise<Abilities> {
  if (connection.endpoint === undefined) return { checksum: 'crc32', conditions: true };
  return known.get(cacheKey(connection), async () => probeServer(connection, signal));
}

export async function probeMultipart(connection: S3Connection, signal: AbortSignal): Promise<MultipartAbilities> {
  if (connection.endpoint === undefined) return { conditions: true, partCopy: true, sourceConditions: true };
  return knownMultipart.get(cacheKey(connection), async () => {
    // A server that ignores conditions of PutObject also ignores them here. CopyObject is sufficient then.
    const { conditions } = await probe(connection, signal);
    return conditions ? probeServerMultipart(connection, signal) : UNSUPPORTED;
  });
}

const UNSUPPORTED: MultipartAbilities = { conditions: false, partCopy: false, sourceConditions: false };

type Outcome = 'done' | 'refused' | 'rejected';

/** True for responses that concern the request rather than permissions, bucket or load. */
function isRejection(error: unknown): boolean {
  const status = s3Status(error);
  if (nameOf(error) === 'NoSuchBucket' || nameOf(error) === 'AuthorizationHeaderMalformed') return false;
  return isRefusedCondition(error) || status === 400 || status === 404 || status === 405 || status === 501;
}

/** Some servers respond with an internal error to unsupported requests. */
function isUnable(error: unknown): boolean {
  return isRejection(error) || nameOf(error) === 'InternalError';
}

/** A 304 with a body, which is not valid HTTP: some servers send it for a refused condition. */
function isRejectionOrInvalid(error: unknown): boolean {
  return isRejection(error) || errnoOf(error)?.startsWith('HPE_') === true;
}

async function attempt(
  connection: S3Connection,
  signal: AbortSignal,
  input: Partial<PutObjectCommandInput>,
  isExpected = isRejection,
) {
  const doing = `detect the features of ${connection.address}`;
  try {
    await connection.send(
      { doing, permission: 's3:PutObject', signal },
      new PutObjectCommand({ ...connection.target(KEY), Body: BODY, ...input }),
      isExpected,
    );
    return 'done' satisfies Outcome;
  } catch (error) {
    if (!isExpected(error)) throw error;
    return isRefusedCondition(error) ? ('refused' satisfies Outcome) : ('rejected' satisfies Outcome);
  }
}

async function probeServer(connection: S3Connection, signal: AbortSignal): Promise<Abilities> {
  const put = (input: Partial<PutObjectCommandInput>, isExpected?: typeof isRejection) =>
    attempt(connection, signal, input, isExpected);
  // The object exists after the first request, so the second must be refused.
  const first = await put({ IfNoneMatch: '*', ...checksumOf(BODY, 'md5') });
  const again = { IfNoneMatch: '*', ...checksumOf(BODY, 'md5') };
  const second = first === 'done' ? await put(again, isRejectionOrInvalid) : first;
  // The body of a 304 can also arrive in front of the next response.
  const swapped = await put({ IfMatch: OTHER_ETAG, ...checksumOf(BODY, 'md5') }, isRejectionOrInvalid);
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
    return isRefusedCondition(error);
  }
}

/** Servers on which an upload of parts with several lengths has failed, by {@link cacheKey}. */
const uniform = new Set<string>();

/** Whether all parts of an upload but the last must have one length, as far as this process has learned. */
export function needsUniformParts(connection: S3Connection): boolean {
  return uniform.has(cacheKey(connection));
}

export function noteUniformParts(connection: S3Connection): void {
  uniform.add(cacheKey(connection));
}

/** Servers that refused to copy a part into an upload with a checksum, by {@link cacheKey}. */
const withoutChecksums = new Set<string>();

/** Whether uploads whose parts are copied must have no checksum, as far as this process has learned. */
export function needsPlainCopies(connection: S3Connection): boolean {
  return withoutChecksums.has(cacheKey(connection));
}

export function notePlainCopies(connection: S3Connection): void {
  withoutChecksums.add(cacheKey(connection));
}

/** Copies the object onto itself as part of an upload whose completion the server must refuse. */
async function probeServerMultipart(connection: S3Connection, signal: AbortSignal): Promise<MultipartAbilities> {
  const purpose = { doing: `detect the features of ${connection.address}`, permission: 's3:PutObject', signal };
  const where = connection.target(KEY);
  await attempt(connection, signal, {});
  const { UploadId } = await connection.send(purpose, new CreateMultipartUploadCommand(where));
  const upload = { ...where, UploadId };
  const part = { ...upload, PartNumber: 1, CopySource: `${where.Bucket}/${where.Key}` };
  const copyPart = async (input: UploadPartCopyCommandInput) =>
    connection.send(purpose, new UploadPartCopyCommand(input), isUnable);
  let isDone = false;
  let sourceConditions = false;
  try {
    const { ETag } = (await copyPart(part)).CopyPartResult ?? {};
    if (ETag === undefined) return UNSUPPORTED;
    sourceConditions = await isRefused(copyPart({ ...part, CopySourceIfMatch: OTHER_ETAG }));
    const parts = { Parts: [{ PartNumber: 1, ETag }] };
    const input = { ...upload, MultipartUpload: parts, IfNoneMatch: '*' };
    await connection.send(purpose, new CompleteMultipartUploadCommand(input), isRejection);
    isDone = true;
    return { conditions: false, partCopy: true, sourceConditions };
  } catch (error) {
    if (!isUnable(error)) throw error;
    return { conditions: isRefusedCondition(error), partCopy: isRefusedCondition(error), sourceConditions };
  } finally {
    if (!isDone) {
      await connection.send(purpose, new AbortMultipartUploadCommand(upload)).catch(() => undefined);
    }
  }
}
