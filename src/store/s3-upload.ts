/**
 * Uploads by parts. Where the digest of the bytes is known, a note below the store's hidden tree says which upload was
 * begun for which bytes, metadata and key, so that after a crash the next run sends only what is not there.
 */
import { createHash, type Hash } from 'node:crypto';
import { UploadPartCommand, type CompletedPart } from '@aws-sdk/client-s3';
import { CurlewError } from '../core/errors.ts';
import { begin, giveUp, purposeOf, removeNote, type Begun, type UploadJob } from './s3-begun.ts';
import { checksumOf, isSamePart } from './s3-checksum.ts';
import { completeOnce, isOurs } from './s3-complete.ts';
import { headObject, plainEtag, quotedEtag } from './s3-read.ts';
import type { StoredObject } from './store.ts';

const MOST_PARTS = 10_000;
const MIB = 1024 * 1024;

/** The source's own failure, or bytes that are not the ones announced: nothing of the upload is worth keeping. */
class BadSource extends Error {}

/** Milliseconds for the answers to parts that are on their way when an upload is stopped. */
const GRACE = 2000;

/**
 * Fires a little later than `signal`: a part that the server has whole, and has not answered yet, would otherwise come into
 * being behind the end of an upload that is given up.
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

/** The object appears whole when all parts are there and the digest is right, or not at all. */
export async function uploadByParts(job: UploadJob): Promise<StoredObject> {
  const { body, memory } = job;
  const partSize = Math.max(memory.size, Math.ceil(body.size / MOST_PARTS / MIB) * MIB);
  const begun = await begin(job, partSize);
  try {
    const Parts = await sendParts(job, begun, partSize);
    const object = await completeUpload(job, begun, Parts);
    await removeNote(job, begun);
    return object;
  } catch (error) {
    const hopeless =
      error instanceof BadSource ||
      (error instanceof CurlewError && ['DIGEST_MISMATCH', 'STORE_CONFLICT', 'AUTH_FAILED'].includes(error.code));
    if (begun.note === undefined || hopeless) await giveUp(job, begun);
    throw error instanceof BadSource ? error.cause : error;
  }
}

/** Reads the body once, in order, while parts are on their way. The first failure stops the others and is thrown. */
async function sendParts(job: UploadJob, begun: Begun, partSize: number): Promise<CompletedPart[]> {
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
          parts[index - 1] = await sendPart({ ...job, signal: late }, begun, index, part.data);
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
      throw new CurlewError('DIGEST_MISMATCH', `${purposeOf(job).doing}: the bytes have another digest`);
    }
  } catch (error) {
    failed.abort(error);
  }
  await Promise.all(sending);
  job.signal.throwIfAborted();
  if (failed.signal.aborted) throw failed.signal.reason;
  return parts;
}

/** The body in parts, each in memory of its own, which the caller gives back. */
async function* cut(
  { body, memory, digest, signal }: UploadJob,
  partSize: number,
  hash: Hash,
): AsyncGenerator<{ readonly buffer: Uint8Array; readonly data: Uint8Array }, void, undefined> {
  let buffer: Uint8Array | undefined;
  let filled = 0;
  let total = 0;
  const badSize = (size: number): BadSource =>
    new BadSource('size', {
      cause: new CurlewError('FETCH_FAILED', `the source gave ${size} bytes, not ${body.size}`),
    });
  const allocate = (length: number): Uint8Array =>
    buffer?.subarray(filled, Math.min(filled + length, partSize)) ?? Buffer.allocUnsafe(length);
  const chunks = body.read(0, body.size, { signal, allocate })[Symbol.asyncIterator]();
  try {
    for (;;) {
      // Taken before the source reads, so that it can read into it.
      if (total < body.size) buffer ??= await memory.take(partSize, { signal });
      const chunk = await nextOf(chunks, signal);
      if (chunk === undefined) break;
      if (digest !== undefined) hash.update(chunk);
      total += chunk.byteLength;
      if (total > body.size) throw badSize(total);
      for (let at = 0; at < chunk.byteLength;) {
        buffer ??= await memory.take(partSize, { signal });
        const some = chunk.subarray(at, at + partSize - filled);
        if (!liesIn(buffer, filled, some)) buffer.set(some, filled);
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

function liesIn(buffer: Uint8Array, at: number, chunk: Uint8Array): boolean {
  return chunk.buffer === buffer.buffer && chunk.byteOffset === buffer.byteOffset + at;
}

/** A failure of the source is told apart from one of the server. */
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

/** One part; what the server holds of it already is not sent again. */
export async function sendPart(
  job: UploadJob,
  { target, held }: Begun,
  number: number,
  data: Uint8Array,
): Promise<CompletedPart> {
  const there = held.get(number);
  if (there !== undefined && isSamePart(data, there)) {
    job.onHeld?.(data.byteLength);
    return { PartNumber: number, ETag: quotedEtag(there.etag), ...sums(there.crc32) };
  }
  const input = { ...target, PartNumber: number, Body: data, ...checksumOf(data, job.checksum) };
  const { ETag, ChecksumCRC32 } = await job.connection.call(purposeOf(job), (options) =>
    job.connection.client.send(new UploadPartCommand(input), options),
  );
  return { PartNumber: number, ETag, ...sums(ChecksumCRC32) };
}

function sums(crc32: string | undefined): { readonly ChecksumCRC32?: string } {
  return crc32 === undefined ? {} : { ChecksumCRC32: crc32 };
}

/** Gives the object its name. */
export async function completeUpload(job: UploadJob, { target }: Begun, Parts: CompletedPart[]): Promise<StoredObject> {
  const { connection, key, body, metadata, ifNoneMatch, ifMatch, signal } = job;
  const input = {
    ...target,
    MultipartUpload: { Parts },
    IfNoneMatch: ifNoneMatch,
    IfMatch: ifMatch === undefined ? undefined : quotedEtag(ifMatch),
  };
  const wanted = { size: body.size, metadata };
  const done = await completeOnce({ connection, purpose: purposeOf(job), input }, async () => {
    const there = await headObject(connection, key, signal);
    return there !== undefined && isOurs(there, wanted) ? there : undefined;
  });
  return 'metadata' in done ? done : { key, size: body.size, etag: plainEtag(done.ETag), metadata };
}
