/** The request that names an upload by parts, whose answer may be lost after it was carried out. */
import {
  CompleteMultipartUploadCommand,
  type CompleteMultipartUploadCommandInput,
  type CompleteMultipartUploadCommandOutput,
} from '@aws-sdk/client-s3';
import { CurlewError } from '../core/errors.ts';
import type { Purpose, S3Connection } from './s3-connection.ts';
import { attemptsOf, nameOf, s3Error, statusOf } from './s3-error.ts';
import type { StoredObject } from './store.ts';

interface Completion {
  readonly connection: S3Connection;
  readonly purpose: Purpose;
  readonly input: CompleteMultipartUploadCommandInput;
}

/** True for an object that is the one we were writing: of this size, and with the metadata, which must tell something. */
export function isOurs(found: StoredObject, wanted: Pick<StoredObject, 'size' | 'metadata'>): boolean {
  const names = Object.keys(wanted.metadata);
  return (
    names.length > 0 &&
    found.size === wanted.size &&
    names.every((name) => found.metadata[name] === wanted.metadata[name])
  );
}

/**
 * Completes an upload. When a later attempt hears that there is no such upload any more, or that the key is taken, an
 * earlier one may have done it: `look` finds out, and says what is there if it is ours.
 */
export async function completeOnce(
  { connection, purpose, input }: Completion,
  look: () => Promise<StoredObject | undefined>,
): Promise<CompleteMultipartUploadCommandOutput | StoredObject> {
  const mayBeDone = (error: unknown): boolean =>
    attemptsOf(error) > 1 && (nameOf(error) === 'NoSuchUpload' || [404, 409, 412].includes(statusOf(error) ?? 0));
  try {
    const done = await connection.call(
      purpose,
      (options) => connection.client.send(new CompleteMultipartUploadCommand(input), options),
      mayBeDone,
    );
    if (done.ETag !== undefined) return done;
  } catch (error) {
    if (error instanceof CurlewError || purpose.signal.aborted) throw error;
    const there = await look();
    if (there !== undefined) return there;
    throw s3Error(error, { ...purpose, bucket: connection.bucket, secrets: [] });
  }
  throw new CurlewError('FETCH_FAILED', `${purpose.doing}: the answer does not say that it was done`);
}
