/** Reads and lists objects in S3. */
import { addAbortSignal, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type GetObjectCommandOutput,
} from '@aws-sdk/client-s3';
import { asError, CurlewError } from '../../core/errors.ts';
import { keyProblem } from './key.ts';
import { tooLarge } from './refusals.ts';
import { MIN_RATE } from '../../platform/http/limits.ts';
import { paced } from '../../platform/http/pace.ts';
import { wholeChecksum, type ResponseChecksums } from './s3-checksum.ts';
import type { S3Connection } from './s3-connection.ts';
import { nameOf, s3Error, s3Status } from './s3-error.ts';
import type { ByteRange, ListedObject, ReadObject, StoredObject } from './store.ts';

/** Attempts for one range without progress. */
const ATTEMPTS = 5;
/** Minimum bytes that count as progress, so that reading from a very slow server ends. */
const PROGRESS = 64 * 1024;

/** Removes quotes, which some servers omit in listings. */
export function plainEtag(etag: string | undefined): string {
  return (etag ?? '').replace(/^W\//, '').replace(/^"(.*)"$/, '$1');
}

export function quotedEtag(etag: string): string {
  return `"${etag}"`;
}

/** Undefined if the object does not exist. */
export async function headObject(
  connection: S3Connection,
  key: string,
  signal: AbortSignal,
): Promise<StoredObject | undefined> {
  const doing = `stat ${key} in ${connection.address}`;
  try {
    const response = await connection.send(
      { doing, permission: 's3:GetObject', signal },
      new HeadObjectCommand({ ...connection.target(key), ChecksumMode: 'ENABLED' }),
      (error) => [400, 301, 403, 404].includes(s3Status(error) ?? 0),
    );
    return objectOf(key, response);
  } catch (error) {
    if (error instanceof CurlewError || signal.aborted) throw error;
    // A response to HEAD has no body with the reason; a response to a listing has.
    await checkBucket(connection, doing, signal);
    if (s3Status(error) === 404) return undefined;
    const { bucket } = connection;
    throw s3Error(error, { doing, bucket, permission: 's3:GetObject and s3:ListBucket', secrets: [] });
  }
}

async function checkBucket(connection: S3Connection, doing: string, signal: AbortSignal): Promise<void> {
  if (connection.hasAnswered()) return;
  const input = { Bucket: connection.bucket, Prefix: connection.prefix, MaxKeys: 1 };
  await connection.send({ doing, permission: 's3:ListBucket', signal }, new ListObjectsV2Command(input));
}

/** Reads a whole object with one request, or more if the connection breaks; undefined if it does not exist. */
export async function readSmall(
  connection: S3Connection,
  key: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ReadObject | undefined> {
  const purpose = { doing: `read ${key} in ${connection.address}`, permission: 's3:GetObject', signal };
  // A 404 may also mean that the bucket is missing or, with versitygw, the user.
  const isMissing = (error: unknown): boolean =>
    s3Status(error) === 404 && !['NoSuchBucket', 'XAdminUserNotFound'].includes(nameOf(error));
  let response: GetObjectCommandOutput;
  try {
    response = await connection.send(purpose, new GetObjectCommand(connection.target(key)), isMissing);
  } catch (error) {
    if (error instanceof CurlewError || signal.aborted || !isMissing(error)) throw error;
    return undefined;
  }
  const object = objectOf(key, response);
  const body = bodyOf(response, purpose.doing);
  if (object.size > limit) {
    body.destroy();
    throw tooLarge(connection.address, key, limit);
  }
  const range = { offset: 0, length: object.size };
  return { data: await buffer(readS3Range(connection, object, range, signal, body)), object };
}

type Found = Pick<GetObjectCommandOutput, 'ContentLength' | 'ETag' | 'Metadata'> & ResponseChecksums;

function objectOf(key: string, response: Found): StoredObject {
  const checksum = wholeChecksum(response);
  const object = {
    key,
    size: response.ContentLength ?? 0,
    etag: plainEtag(response.ETag),
    metadata: { ...response.Metadata },
  };
  return checksum === undefined ? object : { ...object, checksum };
}

function bodyOf({ Body: body }: GetObjectCommandOutput, doing: string): Readable {
  if (!(body instanceof Readable)) throw new CurlewError('FETCH_FAILED', `cannot ${doing}: the response has no body`);
  body.on('error', () => undefined);
  return body;
}

/**
 * Reads a range of the object with this etag; resumes if the connection breaks. Sends the first request when the first chunk
 * is requested, unless `opened` is given.
 */
export async function* readS3Range(
  connection: S3Connection,
  { key, etag }: StoredObject,
  { offset, length }: ByteRange,
  signal: AbortSignal,
  opened?: Readable,
): AsyncGenerator<Uint8Array, void, undefined> {
  const purpose = { doing: `read ${key} in ${connection.address}`, permission: 's3:GetObject', signal };
  let done = 0;
  let failures = 0;
  let first = opened;
  while (done < length) {
    const before = done;
    const range = { offset: offset + done, length: length - done };
    const body = first ?? (await openRange(connection, { key, etag }, range, purpose));
    first = undefined;
    try {
      const pace = { idleMs: connection.idleMs, minRate: MIN_RATE };
      for await (const chunk of paced(addAbortSignal(AbortSignal.any([signal]), body), pace)) {
        const data = chunk.subarray(0, length - done);
        if (data.byteLength === 0) continue;
        done += data.byteLength;
        if (done - before >= PROGRESS) failures = 0;
        yield data;
      }
      if (done < length) throw new Error('the response ended early');
    } catch (error) {
      signal.throwIfAborted();
      failures += 1;
      if (failures < ATTEMPTS) continue;
      throw new CurlewError('FETCH_FAILED', `${purpose.doing}: ${asError(error).message}`, {
        hint: 'run the same command again',
      });
    } finally {
      body.destroy();
    }
  }
}

async function openRange(
  connection: S3Connection,
  { key, etag }: { readonly key: string; readonly etag: string },
  { offset, length }: ByteRange,
  purpose: { readonly doing: string; readonly permission: string; readonly signal: AbortSignal },
): Promise<Readable> {
  const Range = `bytes=${offset}-${offset + length - 1}`;
  const input = { ...connection.target(key), Range, IfMatch: quotedEtag(etag) };
  const response = await connection.send(purpose, new GetObjectCommand(input));
  const body = bodyOf(response, purpose.doing);
  if (plainEtag(response.ETag) !== etag) {
    body.destroy();
    throw new CurlewError('STORE_CONFLICT', `${purpose.doing}: it has changed`);
  }
  if (response.ContentLength !== length) {
    body.destroy();
    throw new CurlewError('FETCH_FAILED', `${purpose.doing}: the server did not return the requested range`);
  }
  return body;
}

/** All objects with a key prefix; skips keys that are not valid in a store. */
export async function* listS3Objects(
  connection: S3Connection,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<ListedObject, void, undefined> {
  const { bucket, prefix: root } = connection;
  const purpose = { doing: `list ${connection.address}`, permission: 's3:ListBucket', signal };
  let token: string | undefined;
  do {
    const input = { Bucket: bucket, Prefix: `${root}${prefix}`, ContinuationToken: token };
    const page = await connection.send(purpose, new ListObjectsV2Command(input));
    for (const { Key, Size, ETag, LastModified } of page.Contents ?? []) {
      const key = Key?.startsWith(root) === true ? Key.slice(root.length) : undefined;
      if (key === undefined || keyProblem(key) !== undefined) continue;
      yield { key, size: Size ?? 0, etag: plainEtag(ETag), modified: LastModified };
    }
    const next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    if (page.IsTruncated === true && (next === undefined || next === token)) {
      throw new CurlewError('FETCH_FAILED', `${purpose.doing}: the server did not return a token for the next page`);
    }
    token = next;
  } while (token !== undefined);
}
