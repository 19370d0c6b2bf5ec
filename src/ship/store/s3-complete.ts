/** Completes a multipart upload, even if the response of a successful request is lost. */
import {
  CompleteMultipartUploadCommand,
  type CompleteMultipartUploadCommandInput,
  type CompleteMultipartUploadCommandOutput,
} from '@aws-sdk/client-s3';
import { CurlewError } from '../../core/errors.ts';
import type { Purpose, S3Connection } from './s3-connection.ts';
import { attemptsOf, isRefusedCondition, nameOf, s3Error, s3Status } from './s3-error.ts';
import type { StoredObject } from './store.ts';

interface Completion {
  readonly connection: S3Connection;
  readonly purpose: Purpose;
  readonly input: CompleteMultipartUploadCommandInput;
}

/** The server does not make an object of the parts that it has accepted. */
export class RefusedParts extends CurlewError {}

/** True if the object is the one being written: same size and same metadata, which must not be empty. */
export function isOurs(object: StoredObject, written: Pick<StoredObject, 'size' | 'metadata'>): boolean {
  const names = Object.keys(written.metadata);
  return (
    names.length > 0 &&
    object.size === written.size &&
    names.every((name) => object.metadata[name] === written.metadata[name])
  );
}

/**
 * Completes an upload. If a retry fails because the upload no longer exists or the key exists, an earlier attempt may have
 * succeeded: `findOurs` returns the object under the key if it is the uploaded one.
 */
export async function completeOnce(
  { connection, purpose, input }: Completion,
  findOurs: () => Promise<StoredObject | undefined>,
): Promise<CompleteMultipartUploadCommandOutput | StoredObject> {
  const mayBeDone = (error: unknown): boolean =>
    attemptsOf(error) > 1 && (nameOf(error) === 'NoSuchUpload' || s3Status(error) === 404 || isRefusedCondition(error));
  try {
    const done = await connection.send(
      purpose,
      new CompleteMultipartUploadCommand(input),
      (error) => mayBeDone(error) || nameOf(error) === 'InvalidPart',
    );
    if (done.ETag !== undefined) return done;
  } catch (error) {
    if (error instanceof CurlewError || purpose.signal.aborted) throw error;
    const existing = await findOurs();
    if (existing !== undefined) return existing;
    const reason = s3Error(error, { ...purpose, bucket: connection.bucket, secrets: [] });
    throw nameOf(error) === 'InvalidPart' ? new RefusedParts(reason.code, reason.message, reason) : reason;
  }
  throw new CurlewError('FETCH_FAILED', `${purpose.doing}: the response does not confirm the upload`);
}
