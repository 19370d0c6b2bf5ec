/** Multipart uploads that can be resumed: starting, finding uploaded parts, aborting. A note in the store names each upload. */
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListPartsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { canonicalJson, digestOf, hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { HIDDEN } from './key.ts';
import type { ChecksumKind, HeldPart } from './s3-checksum.ts';
import type { Purpose, S3Connection } from './s3-connection.ts';
import { s3Status } from './s3-error.ts';
import type { PartMemory } from './s3-parts.ts';
import { plainEtag } from './s3-read.ts';
import type { Conditions, Metadata, Upload } from './store.ts';

export interface UploadJob extends Conditions {
  readonly connection: S3Connection;
  readonly key: string;
  readonly body: Upload;
  readonly metadata: Metadata;
  readonly digest: Digest | undefined;
  readonly checksum: ChecksumKind;
  readonly memory: PartMemory;
  readonly onHeld?: ((bytes: number) => void) | undefined;
  readonly signal: AbortSignal;
}

/** A multipart upload that this run or an earlier one started. */
export interface StartedUpload {
  readonly target: { readonly Bucket: string; readonly Key: string; readonly UploadId: string };
  readonly held: ReadonlyMap<number, HeldPart>;
  /** Key of its note; undefined if it cannot be resumed. */
  readonly note: string | undefined;
}

export function purposeOf({ connection, key, signal }: UploadJob): Purpose {
  return { doing: `write ${key} to ${connection.address}`, permission: 's3:PutObject', signal };
}

/** Resumes the upload that an earlier run started for the same bytes, otherwise starts one. */
export async function startUpload(job: UploadJob, partSize: number): Promise<StartedUpload> {
  const { connection, key, body, metadata, digest, checksum } = job;
  const identity = { key, size: body.size, digest: digest ?? '', metadata, partSize, checksum };
  const note = digest === undefined ? undefined : `${HIDDEN}/uploads/${hexOf(digestOf(canonicalJson(identity)))}`;
  const where = connection.target(key);
  const earlier = note === undefined ? undefined : await readNote(job, note);
  if (earlier !== undefined) {
    const target = { ...where, UploadId: earlier };
    const held = await listParts(job, target);
    if (held !== undefined) return { target, held, note };
  }
  const whole = { ChecksumAlgorithm: 'CRC32', ChecksumType: 'FULL_OBJECT' } as const;
  const algorithm = checksum === 'crc32' ? whole : {};
  const { UploadId } = await connection.send(
    purposeOf(job),
    new CreateMultipartUploadCommand({ ...where, ...algorithm, Metadata: { ...metadata } }),
  );
  if (UploadId === undefined)
    throw new CurlewError('FETCH_FAILED', `${purposeOf(job).doing}: the response does not contain an upload ID`);
  const started = { target: { ...where, UploadId }, held: new Map<number, HeldPart>(), note };
  if (note === undefined) return started;
  try {
    await connection.send(purposeOf(job), new PutObjectCommand({ ...connection.target(note), Body: UploadId }));
  } catch (error) {
    await abortUpload(job, started);
    throw error;
  }
  return started;
}

async function readNote(job: UploadJob, note: string): Promise<string | undefined> {
  const { connection } = job;
  try {
    const response = await connection.send(
      { ...purposeOf(job), permission: 's3:GetObject' },
      new GetObjectCommand({ ...connection.target(note), Range: 'bytes=0-2047' }),
      (error) => [403, 404, 416].includes(s3Status(error) ?? 0),
    );
    const text = await response.Body?.transformToString();
    return text === undefined || text === '' || text.length >= 2048 ? undefined : text;
  } catch (error) {
    if (error instanceof CurlewError || job.signal.aborted) throw error;
    return undefined;
  }
}

/** Undefined if the upload no longer exists. */
async function listParts(job: UploadJob, target: StartedUpload['target']): Promise<Map<number, HeldPart> | undefined> {
  const { connection } = job;
  const held = new Map<number, HeldPart>();
  let marker: string | undefined;
  try {
    do {
      const input = { ...target, PartNumberMarker: marker };
      const page = await connection.send(
        { ...purposeOf(job), permission: 's3:ListMultipartUploadParts' },
        new ListPartsCommand(input),
        (error) => [400, 404].includes(s3Status(error) ?? 0),
      );
      for (const { PartNumber, Size, ETag, ChecksumCRC32 } of page.Parts ?? []) {
        if (PartNumber === undefined) continue;
        held.set(PartNumber, { size: Size ?? -1, etag: plainEtag(ETag), crc32: ChecksumCRC32 });
      }
      const next = page.IsTruncated === true ? page.NextPartNumberMarker : undefined;
      marker = next === marker ? undefined : next;
    } while (marker !== undefined);
    return held;
  } catch (error) {
    if (error instanceof CurlewError || job.signal.aborted) throw error;
    return undefined;
  }
}

/** Aborts an upload. Ignores failures, since the caller reports the original error. */
export async function abortUpload(job: UploadJob, started: StartedUpload): Promise<void> {
  const { connection } = job;
  const late = { ...purposeOf(job), signal: AbortSignal.timeout(10_000) };
  await connection.send(late, new AbortMultipartUploadCommand(started.target)).catch(() => undefined);
  await removeUploadNote({ ...job, signal: late.signal }, started);
}

/** Removes the note. Ignores failures: the next run detects a note of an upload that no longer exists. */
export async function removeUploadNote(job: UploadJob, { note }: StartedUpload): Promise<void> {
  const { connection } = job;
  if (note === undefined) return;
  await connection.send(purposeOf(job), new DeleteObjectCommand(connection.target(note))).catch(() => undefined);
}
