/**
 * Multipart uploads. If the digest of the bytes is known, a note in the store's hidden tree records the upload ID for these
 * bytes, metadata and key, so that the next run resumes after a crash.
 */
import { createHash, type Hash } from 'node:crypto';
import { UploadPartCommand, type CompletedPart } from '@aws-sdk/client-s3';
import { CurlewError } from '../../core/errors.ts';
import {
  startUpload,
  abortUpload,
  purposeOf,
  removeUploadNote,
  type StartedUpload,
  type UploadJob,
} from './s3-started-upload.ts';
import { checksumOf, isSamePart } from './s3-checksum.ts';
import { completeOnce, isOurs } from './s3-complete.ts';
import { PART_LIMITS } from './s3-part-plan.ts';
import { headObject, plainEtag, quotedEtag } from './s3-read.ts';
import { wrongSize } from './refusals.ts';
import type { StoredObject } from './store.ts';

const MIB = 1024 * 1024;

/** The source failed or has the wrong size: the upload is not worth keeping. */
class BadSource extends Error {}

/** Milliseconds to wait for responses to parts in flight when an upload is stopped. */
const GRACE = 2000;

/**
 * Aborts a little later than `signal`. Otherwise a part that the server has received, but not yet confirmed, could be created
 * after the upload is aborted.
 */
export function withGrace(signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  const stop = (): void => {
    setTimeout(() => late.abort(signal.reason), GRACE).unref();
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  return late.signal;
}

/** Atomic: the object appears when all parts exist and the digest matches, or not at all. */
export async function uploadByParts(job: UploadJob): Promise<StoredObject> {
  const { body, memory } = job;
  const partSize = Math.max(memory.size, Math.ceil(body.size / PART_LIMITS.parts / MIB) * MIB);
  const started = await startUpload(job, partSize);
  try {
    const Parts = await sendParts(job, started, partSize);
    const object = await completeUpload(job, started, Parts);
    await removeUploadNote(job, started);
    return object;
  } catch (error) {
    const cannotResume =
      error instanceof BadSource ||
      (error instanceof CurlewError && ['DIGEST_MISMATCH', 'STORE_CONFLICT', 'AUTH_FAILED'].includes(error.code));
    if (started.note === undefined || cannotResume) await abortUpload(job, started);
    throw error instanceof BadSource ? error.cause : error;
  }
}

/** Reads the body once, in order, while parts are in flight. The first failure stops the others and is thrown. */
async function sendParts(job: UploadJob, started: StartedUpload, partSize: number): Promise<CompletedPart[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([job.signal, failed.signal]);
  const late = withGrace(signal);
  const parts: CompletedPart[] = [];
  const sending = new Set<Promise<void>>();
  const hash = createHash('sha256');
  try {
    let number = 0;
    for await (const part of cut({ ...job, signal }, partSize, hash)) {
      number += 1;
      const index = number;
      const work = (async () => {
        try {
          parts[index - 1] = await sendPart({ ...job, signal: late }, started, index, part.data);
        } catch (error) {
          failed.abort(error);
        } finally {
          job.memory.give(part.buffer);
        }
      })();
      sending.add(work);
      void work.then(() => sending.delete(work));
    }
    const digest = `sha256:${hash.digest('hex')}`;
    if (job.digest !== undefined && digest !== job.digest) {
      throw new CurlewError('DIGEST_MISMATCH', `${purposeOf(job).doing}: the bytes do not match the digest`);
    }
  } catch (error) {
    failed.abort(error);
  }
  await Promise.all(sending);
  job.signal.throwIfAborted();
  if (failed.signal.aborted) throw failed.signal.reason;
  return parts;
}

/** The body in parts, each in a separate buffer that the caller returns. */
async function* cut(
  { body, memory, digest, signal }: UploadJob,
  partSize: number,
  hash: Hash,
): AsyncGenerator<{ readonly buffer: Uint8Array; readonly data: Uint8Array }, void, undefined> {
  let buffer: Uint8Array | undefined;
  let filled = 0;
  let total = 0;
  const badSize = (size: number): BadSource => new BadSource('size', { cause: wrongSize(size, body.size) });
  const allocate = (length: number): Uint8Array =>
    buffer?.subarray(filled, Math.min(filled + length, partSize)) ?? Buffer.allocUnsafe(length);
  const chunks = body.read(0, body.size, { signal, allocate })[Symbol.asyncIterator]();
  try {
    for (;;) {
      // The buffer is taken before the source reads, so that the source can read into it.
      if (total < body.size) buffer ??= await memory.take(partSize, { signal });
      const chunk = await nextOf(chunks, signal);
      if (chunk === undefined) break;
      if (digest !== undefined) hash.update(chunk);
      total += chunk.byteLength;
      if (total > body.size) throw badSize(total);
      for (let at = 0; at < chunk.byteLength;) {
        buffer ??= await memory.take(partSize, { signal });
        const some = chunk.subarray(at, at + partSize - filled);
        if (!isInPlace(buffer, filled, some)) buffer.set(some, filled);
        filled += some.byteLength;
        at += some.byteLength;
        if (filled < partSize) continue;
        const full = buffer;
        buffer = undefined;
        filled = 0;
        yield { buffer: full, data: full.subarray(0, partSize) };
      }
    }
    if (total !== body.size) throw badSize(total);
    if (buffer === undefined) return;
    const last = buffer;
    buffer = undefined;
    yield { buffer: last, data: last.subarray(0, filled) };
  } finally {
    await chunks.return?.();
    if (buffer !== undefined) memory.give(buffer);
  }
}

function isInPlace(buffer: Uint8Array, at: number, chunk: Uint8Array): boolean {
  return chunk.buffer === buffer.buffer && chunk.byteOffset === buffer.byteOffset + at;
}

/** The next chunk. Wraps failures of the source to distinguish them from failures of the server. */
async function nextOf(chunks: AsyncIterator<Uint8Array>, signal: AbortSignal): Promise<Uint8Array | undefined> {
  signal.throwIfAborted();
  try {
    const next = await chunks.next();
    return next.done === true ? undefined : next.value;
  } catch (error) {
    signal.throwIfAborted();
    throw new BadSource('source', { cause: error });
  }
}

/** Sends one part, unless the server already has it. */
export async function sendPart(
  job: UploadJob,
  { target, held }: StartedUpload,
  number: number,
  data: Uint8Array,
): Promise<CompletedPart> {
  const existing = held.get(number);
  if (existing !== undefined && isSamePart(data, existing)) {
    job.onHeld?.(data.byteLength);
    return { PartNumber: number, ETag: quotedEtag(existing.etag), ...sums(existing.crc32) };
  }
  const input = { ...target, PartNumber: number, Body: data, ...checksumOf(data, job.checksum) };
  const { ETag, ChecksumCRC32 } = await job.connection.send(purposeOf(job), new UploadPartCommand(input));
  return { PartNumber: number, ETag, ...sums(ChecksumCRC32) };
}

function sums(crc32: string | undefined): { readonly ChecksumCRC32?: string } {
  return crc32 === undefined ? {} : { ChecksumCRC32: crc32 };
}

/** Completes the upload; the object appears. */
export async function completeUpload(
  job: UploadJob,
  { target }: StartedUpload,
  Parts: CompletedPart[],
): Promise<StoredObject> {
  const { connection, key, body, metadata, ifNoneMatch, ifMatch, signal } = job;
  const input = {
    ...target,
    MultipartUpload: { Parts },
    IfNoneMatch: ifNoneMatch,
    IfMatch: ifMatch === undefined ? undefined : quotedEtag(ifMatch),
  };
  const written = { size: body.size, metadata };
  const done = await completeOnce({ connection, purpose: purposeOf(job), input }, async () => {
    const existing = await headObject(connection, key, signal);
    return existing !== undefined && isOurs(existing, written) ? existing : undefined;
  });
  return 'metadata' in done ? done : { key, size: body.size, etag: plainEtag(done.ETag), metadata };
}
