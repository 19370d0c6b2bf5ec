/** Objects made of what the server holds already: parts that it copies, and between them parts that are sent. */
import { UploadPartCopyCommand, type CompletedPart } from '@aws-sdk/client-s3';
import { eachLimited, mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { begin, giveUp, type Begun, type UploadJob } from './s3-begun.ts';
import { connectionOf, placeOf } from './s3-connection.ts';
import { copySourceOf } from './s3-copy.ts';
import { planParts, type PartLimits, type PlannedPart } from './s3-part-plan.ts';
import { probeMultipart } from './s3-probe.ts';
import { headObject } from './s3-read.ts';
import { completeUpload, sendPart, withGrace } from './s3-upload.ts';
import type { CopiedRange, StoredObject } from './store.ts';

/** Copying costs the server time, and this machine nothing. */
const AT_ONCE = 8;

interface ComposeJob {
  readonly upload: UploadJob;
  readonly parts: readonly PlannedPart[];
  /** The server refuses by itself to copy from an object with another etag. */
  readonly sourceConditions: boolean;
}

/**
 * Undefined when the server has nothing to copy by itself, or cannot; and where there is a digest to be proved, since
 * nobody would see all bytes.
 */
export async function composeWherePossible(upload: UploadJob, limits: PartLimits): Promise<StoredObject | undefined> {
  const { connection, body, digest, signal } = upload;
  const { server } = placeOf(connection);
  const copies = (body.copies ?? []).filter(({ place }) => place.server === server);
  if (copies.length === 0 || digest !== undefined) return undefined;
  const parts = planParts(body.size, copies, limits);
  if (!parts.some(({ copy }) => copy !== undefined)) return undefined;
  const { partCopy, sourceConditions } = await probeMultipart(connection, signal);
  if (!partCopy) return undefined;
  // A checksum of the whole would have to be known of what is copied, too: what is sent has one for each part.
  return composeByParts({ upload: { ...upload, checksum: 'md5' }, parts, sourceConditions });
}

/** The object appears whole when all parts are there, or not at all; a source with another etag is `STORE_CONFLICT`. */
async function composeByParts(job: ComposeJob): Promise<StoredObject> {
  const { upload, parts, sourceConditions } = job;
  if (!sourceConditions) await requireSources(job);
  const begun = await begin(upload, 0);
  try {
    const numbered = parts.map((part, index) => ({ ...part, number: index + 1 }));
    // One that fails does not cut the others off: what they did would arrive behind the end of the upload.
    const limits = { width: AT_ONCE, signal: upload.signal };
    const late = withGrace(upload.signal);
    const done = await mapLimited(numbered, async (part) => makePart(upload, begun, { ...part, late }), limits);
    if (!sourceConditions) await requireSources(job);
    return await completeUpload(upload, begun, done);
  } catch (error) {
    // Copies are quickly made again: nothing is kept. A part that was on its way may have come behind the first time.
    await giveUp(upload, begun);
    await giveUp(upload, begun);
    throw error;
  }
}

type NumberedPart = PlannedPart & {
  readonly number: number;
  /** Stops the request that makes it. */
  readonly late: AbortSignal;
};

async function makePart(upload: UploadJob, begun: Begun, part: NumberedPart): Promise<CompletedPart> {
  const { memory, body, signal } = upload;
  const { at, length, number, late } = part;
  if (part.copy !== undefined) return copyPart(upload, begun, { ...part, ...part.copy });
  const buffer = await memory.take(length, { signal });
  try {
    let filled = 0;
    for await (const chunk of body.read(at, length, { signal })) {
      if (filled + chunk.byteLength <= length) buffer.set(chunk, filled);
      filled += chunk.byteLength;
    }
    if (filled !== length) throw new CurlewError('FETCH_FAILED', `the source gave ${filled} bytes, not ${length}`);
    return await sendPart({ ...upload, signal: late }, begun, number, buffer.subarray(0, filled));
  } finally {
    memory.give(buffer);
  }
}

async function copyPart(
  { connection, key, body }: UploadJob,
  { target }: Begun,
  { length, number: PartNumber, range, offset, late: signal }: NumberedPart & NonNullable<PlannedPart['copy']>,
): Promise<CompletedPart> {
  const from = connectionOf(connection, range.place);
  const doing = `copy ${from.address}/${range.key} into ${connection.address}/${key}`;
  const CopySourceRange = `bytes=${offset}-${offset + length - 1}`;
  const input = { ...target, PartNumber, ...copySourceOf(from, range), CopySourceRange };
  const { CopyPartResult: result } = await connection.call({ doing, permission: 's3:PutObject', signal }, (options) =>
    connection.client.send(new UploadPartCopyCommand(input), options),
  );
  if (result?.ETag === undefined) {
    throw new CurlewError('FETCH_FAILED', `${doing}: the answer does not say that it was done`);
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
      const found = await headObject(from, key, context.signal);
      if (found?.etag === etag) return;
      throw new CurlewError('STORE_CONFLICT', `copy ${from.address}/${key}: it has changed meanwhile`);
    },
    { width: AT_ONCE, signal },
  );
}
