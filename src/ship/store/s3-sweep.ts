/** Aborts abandoned multipart uploads: they cost storage and are not visible in listings of objects. */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
} from '@aws-sdk/client-s3';
import { HIDDEN, keyProblem } from './key.ts';
import type { S3Connection } from './s3-connection.ts';

interface OldUpload {
  readonly Key: string;
  readonly UploadId: string;
}

/** Aborts uploads under the store's prefix that started before this date, and removes notes of that age. Returns the count. */
export async function sweepUploads(
  connection: S3Connection,
  before: Date,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<number> {
  const { bucket: Bucket, address } = connection;
  const purpose = (doing: string, permission: string) => ({ doing: `${doing} in ${address}`, permission, signal });
  const old: OldUpload[] = [];
  for await (const one of oldUploads(connection, before, signal)) old.push(one);
  if (dryRun) return old.length;
  for (const one of old) {
    const doing = purpose(`abort the upload of ${one.Key}`, 's3:AbortMultipartUpload');
    await connection.send(doing, new AbortMultipartUploadCommand({ Bucket, ...one }));
  }
  for await (const Key of oldNotes(connection, before, signal)) {
    const doing = purpose(`delete ${Key}`, 's3:DeleteObject');
    await connection.send(doing, new DeleteObjectCommand({ Bucket, Key }));
  }
  return old.length;
}

async function* oldUploads(
  connection: S3Connection,
  before: Date,
  signal: AbortSignal,
): AsyncGenerator<OldUpload, void, undefined> {
  const { bucket: Bucket, prefix: Prefix, address } = connection;
  const purpose = { doing: `list uploads in ${address}`, permission: 's3:ListBucketMultipartUploads', signal };
  let marker: { readonly KeyMarker?: string | undefined; readonly UploadIdMarker?: string | undefined } = {};
  for (;;) {
    const input = { Bucket, Prefix, ...marker };
    const page = await connection.send(purpose, new ListMultipartUploadsCommand(input));
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      const isOld = Initiated !== undefined && Initiated < before;
      if (Key === undefined || UploadId === undefined || !isOld || !isOurKey(connection, Key)) continue;
      yield { Key, UploadId };
    }
    const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
    const isMore = page.IsTruncated === true && KeyMarker !== undefined && KeyMarker !== '';
    if (!isMore || (KeyMarker === marker.KeyMarker && UploadIdMarker === marker.UploadIdMarker)) return;
    marker = { KeyMarker, UploadIdMarker };
  }
}

/** True for a key that this store could have written. */
function isOurKey({ prefix }: S3Connection, Key: string): boolean {
  if (!Key.startsWith(prefix)) return false;
  const key = Key.slice(prefix.length);
  return key === `${HIDDEN}/probe` || keyProblem(key) === undefined;
}

async function* oldNotes(
  connection: S3Connection,
  before: Date,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const { bucket, prefix, address } = connection;
  const purpose = { doing: `list uploads in ${address}`, permission: 's3:ListBucket', signal };
  const input = { Bucket: bucket, Prefix: `${prefix}${HIDDEN}/uploads/` };
  // Reads one page of a thousand keys; the next sweep finds the rest.
  const page = await connection.send(purpose, new ListObjectsV2Command(input));
  for (const { Key, LastModified } of page.Contents ?? []) {
    if (Key !== undefined && LastModified !== undefined && LastModified < before) yield Key;
  }
}
