/** Composes an object of parts that the server copies from its own objects, and uploaded parts between them. */
import { UploadPartCopyCommand, type CompletedPart } from '@aws-sdk/client-s3';
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { startUpload, abortUpload, type StartedUpload, type UploadJob } from './s3-started-upload.ts';
import { connectionOf, s3Place } from './s3-connection.ts';
import { copySourceOf } from './s3-copy.ts';
import { planUpload, type PartLimits, type UploadPart } from './s3-part-plan.ts';
import { RefusedParts } from './s3-complete.ts';
import { needsUniformParts, noteUniformParts, probeMultipart } from './s3-probe.ts';
import { headObject } from './s3-read.ts';
import { completeUpload, sendPart, withGrace } from './s3-upload.ts';
import { wrongSize } from './refusals.ts';
import type { CopiedRange, StoredObject } from './store.ts';

/** Concurrent parts. Copying needs time on the server, but no resources here. */
const CONCURRENCY = 8;

interface ComposeJob {
  readonly upload: UploadJob;
  readonly parts: readonly UploadPart[];
  /** True if the server refuses to copy from an object with another etag. */
  readonly sourceConditions: boolean;
}

/**
 * Undefined if the server cannot copy any part, does not accept parts of several lengths, or if a digest must be verified,
 * since the client does not see all bytes.
 */
export async function composeWherePossible(upload: UploadJob, limits: PartLimits): Promise<StoredObject | undefined> {
  const { connection, body, digest, signal } = upload;
  const { server } = s3Place(connection);
  const copies = (body.copies ?? []).filter(({ place }) => place.server === server);
  if (copies.length === 0 || digest !== undefined || needsUniformParts(connection)) return undefined;
  const parts = planUpload(body.size, copies, limits);
  if (!parts.some(({ copy }) => copy !== undefined)) return undefined;
  const { partCopy, sourceConditions } = await probeMultipart(connection, signal);
  if (!partCopy) return undefined;
  // A checksum of the whole object is unknown, because of the copied parts. Uploaded parts have one checksum each.
  try {
    return await composeByParts({ upload: { ...upload, checksum: 'md5' }, parts, sourceConditions });
  } catch (error) {
    // Only the completion shows it, as on Cloudflare R2. An upload whose parts have one length shows other reasons again.
    if (!(error instanceof RefusedParts)) throw error;
    noteUniformParts(connection);
    for (const { copy, length } of parts) if (copy !== undefined) body.onCopied?.(-length);
    return undefined;
  }
}

/** Atomic: the object appears when all parts exist, or not at all. A source with another etag is `STORE_CONFLICT`. */
async function composeByParts(job: ComposeJob): Promise<StoredObject> {
  const { upload, parts, sourceConditions } = job;
  if (!sourceConditions) await requireSources(job);
  const started = await startUpload(upload, 0);
  try {
    const numbered = parts.map((part, index) => ({ ...part, number: index + 1 }));
    // A failed part does not abort the others at once: their parts could arrive after the upload is aborted.
    const limits = { width: CONCURRENCY, signal: upload.signal };
    const late = withGrace(upload.signal);
    const done = await mapLimited(numbered, async (part) => makePart(upload, started, { ...part, late }), limits);
    if (!sourceConditions) await requireSources(job);
    return await completeUpload(upload, started, done);
  } catch (error) {
    // Copying again is cheap, so nothing is kept. Aborts twice because a part in flight may arrive after the first abort.
    await abortUpload(upload, started);
    await abortUpload(upload, started);
    throw error;
  }
}

type NumberedPart = UploadPart & {
  readonly number: number;
  /** Aborts the request of this part. */
  readonly late: AbortSignal;
};

async function makePart(upload: UploadJob, started: StartedUpload, part: NumberedPart): Promise<CompletedPart> {
  const { memory, body, signal } = upload;
  const { at, length, number, late } = part;
  if (part.copy !== undefined) return copyPart(upload, started, { ...part, ...part.copy });
  const buffer = await memory.take(length, { signal });
  try {
    let filled = 0;
    for await (const chunk of body.read(at, length, { signal })) {
      if (filled + chunk.byteLength <= length) buffer.set(chunk, filled);
      filled += chunk.byteLength;
    }
    if (filled !== length) throw wrongSize(filled, length);
    return await sendPart({ ...upload, signal: late }, started, number, buffer.subarray(0, filled));
  } finally {
    memory.give(buffer);
  }
}

async function copyPart(
  { connection, key, body }: UploadJob,
  { target }: StartedUpload,
  { length, number: PartNumber, range, offset, late: signal }: NumberedPart & NonNullable<UploadPart['copy']>,
): Promise<CompletedPart> {
  const from = connectionOf(connection, range.place);
  const doing = `copy ${from.address}/${range.key} into ${connection.address}/${key}`;
  const CopySourceRange = `bytes=${offset}-${offset + length - 1}`;
  const input = { ...target, PartNumber, ...copySourceOf(from, range), CopySourceRange };
  const { CopyPartResult: result } = await connection.send(
    { doing, permission: 's3:PutObject', signal },
    new UploadPartCopyCommand(input),
  );
  if (result?.ETag === undefined) {
    throw new CurlewError('FETCH_FAILED', `cannot ${doing}: the response does not confirm the copy`);
  }
  body.onCopied?.(length);
  return { PartNumber, ETag: result.ETag };
}

async function requireSources({ upload: { connection, signal }, parts }: ComposeJob): Promise<void> {
  const ranges = new Map<string, CopiedRange>();
  for (const { copy } of parts) {
    if (copy !== undefined) ranges.set(`${copy.range.place.base}/${copy.range.key}`, copy.range);
  }
  await eachLimited(
    ranges.values(),
    async ({ place, key, etag }, context) => {
      const from = connectionOf(connection, place);
      const object = await headObject(from, key, context.signal);
      if (object?.etag === etag) return;
      throw new CurlewError('STORE_CONFLICT', `cannot copy ${from.address}/${key}: it has changed`);
    },
    { width: CONCURRENCY, signal },
  );
}
