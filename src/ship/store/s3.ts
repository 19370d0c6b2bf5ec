/** A bucket as a store. docs/s3.md documents the required behavior of each call. */
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { checkedKey } from './key.ts';
import { changed, missing, rangeIn, refuseEarly, unmet, wrongSize } from './refusals.ts';
import { parseS3Address, type S3Options } from './s3-address.ts';
import { composeWherePossible } from './s3-compose.ts';
import { checksumOf } from './s3-checksum.ts';
import { connectionOf, connectS3, s3Place, type S3Connection } from './s3-connection.ts';
import { copyByParts, copyWhole, COPY_LIMITS, type CopyLimits } from './s3-copy.ts';
import { attemptsOf, isRefusedCondition, nameOf } from './s3-error.ts';
import { PART_LIMITS, type PartLimits } from './s3-part-plan.ts';
import { createPartMemory, type PartMemory } from './s3-parts.ts';
import { probe, probeMultipart } from './s3-probe.ts';
import { headObject, listS3Objects, plainEtag, quotedEtag, readS3Range, readSmall } from './s3-read.ts';
import { sweepUploads } from './s3-sweep.ts';
import { uploadByParts } from './s3-upload.ts';
import type { Conditions, CopyOptions, GetOptions, Store, StoredObject, Upload } from './store.ts';

export interface S3StoreOptions extends S3Options {
  readonly report: Report;
  /** Overrides the server's limits, so that tests can copy larger objects. */
  readonly copyLimits?: CopyLimits;
  /** Overrides the server's limits for composed objects. */
  readonly partLimits?: PartLimits;
}

/** Number of objects whose size and metadata are cached, so that range reads need no HEAD request. */
const CACHE_SIZE = 2000;
const PART_MEMORY = { size: PART_LIMITS.sent, count: 4 };

interface S3 {
  readonly connection: S3Connection;
  readonly memory: PartMemory;
  readonly known: Map<string, StoredObject>;
  readonly copyLimits: CopyLimits;
  readonly partLimits: PartLimits;
  /** Warns once that the server ignores conditions. */
  readonly warn: () => void;
}

/** Creates a store without sending a request. Throws `USAGE` for an invalid address or endpoint. */
export function createS3Store(
  address: string,
  { report, copyLimits = COPY_LIMITS, partLimits = PART_LIMITS, ...options }: S3StoreOptions,
): Store {
  const connection = connectS3(parseS3Address(address), options);
  let warned = false;
  const s3: S3 = {
    connection,
    memory: createPartMemory(PART_MEMORY),
    known: new Map(),
    copyLimits,
    partLimits,
    warn: () => {
      if (warned) return;
      warned = true;
      const text = `${connection.address}: the server ignores conditional writes: run only one publisher at a time`;
      report({ type: 'note', level: 'warning', text });
    },
  };
  const where = connection.address;
  return {
    address: where,
    place: s3Place(connection),
    head: async (key, { signal }) => look(s3, checkedKey(key, where), signal),
    get: async (key, options) => get(s3, checkedKey(key, where), options),
    read: async (key, options) => {
      const stored = await readSmall(connection, checkedKey(key, where), options);
      if (stored === undefined) s3.known.delete(key);
      else remember(s3, stored.object);
      return stored;
    },
    put: async (key, body, options) => remember(s3, await put(s3, checkedKey(key, where), body, options)),
    copy: async (fromKey, toKey, options) => {
      checkedKey(toKey, where);
      return remember(s3, await copy(s3, fromKey, toKey, options));
    },
    list: (prefix, { signal }) => {
      const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
      if (folder !== '') checkedKey(folder.slice(0, -1), where);
      return listS3Objects(connection, prefix, signal);
    },
    sweepUploads: async (before, options) => sweepUploads(connection, before, options),
    delete: async (key, { signal }) => {
      s3.known.delete(checkedKey(key, where));
      const purpose = { doing: `delete ${key} in ${where}`, permission: 's3:DeleteObject', signal };
      try {
        await connection.send(
          purpose,
          new DeleteObjectCommand(connection.target(key)),
          (error) => nameOf(error) === 'NoSuchKey',
        );
      } catch (error) {
        if (nameOf(error) !== 'NoSuchKey') throw error;
      }
    },
  };
}

function remember({ known }: S3, object: StoredObject): StoredObject {
  known.delete(object.key);
  known.set(object.key, object);
  const [oldest] = known.keys();
  if (known.size > CACHE_SIZE && oldest !== undefined) known.delete(oldest);
  return object;
}

async function look(s3: S3, key: string, signal: AbortSignal): Promise<StoredObject | undefined> {
  const object = await headObject(s3.connection, key, signal);
  if (object === undefined) s3.known.delete(key);
  return object === undefined ? undefined : remember(s3, object);
}

async function get(s3: S3, key: string, { range, ifMatch, signal }: GetOptions): ReturnType<Store['get']> {
  const remembered = s3.known.get(key);
  // The cached entry may be outdated, since the server checks the etag again.
  const object = ifMatch !== undefined && remembered?.etag === ifMatch ? remembered : await look(s3, key, signal);
  if (object === undefined) throw missing(s3.connection.address, key);
  if (ifMatch !== undefined && object.etag !== ifMatch) throw changed(s3.connection.address, key);
  const wanted = rangeIn(s3.connection.address, object, range);
  return { ...object, body: readS3Range(s3.connection, object, wanted, signal) };
}

async function requireConditions(s3: S3, key: string, conditions: Conditions, signal: AbortSignal): Promise<void> {
  await refuseEarly(s3.connection.address, key, conditions, async () => look(s3, key, signal));
}

async function put(
  s3: S3,
  key: string,
  body: Uint8Array | Upload,
  options: Parameters<Store['put']>[2],
): Promise<StoredObject> {
  const { signal, digest, onHeld, metadata = {} } = options;
  if (body instanceof Uint8Array) return putWhole(s3, key, body, options);
  const { memory, connection } = s3;
  if (body.size <= memory.size) {
    const buffer = await memory.take(body.size, { signal });
    try {
      return await putWhole(s3, key, await readWhole(body, buffer, signal), options);
    } finally {
      memory.give(buffer);
    }
  }
  const conditional = options.ifNoneMatch !== undefined || options.ifMatch !== undefined;
  if (options.isFree !== true) await requireConditions(s3, key, options, signal);
  const { checksum } = await probe(connection, signal);
  const honored = !conditional || (await probeMultipart(connection, signal)).conditions;
  if (!honored) {
    s3.warn();
    if (options.isFree === true) await requireConditions(s3, key, options, signal);
  }
  const { ifNoneMatch, ifMatch } = honored ? options : { ifNoneMatch: undefined, ifMatch: undefined };
  const job = { connection, key, body, metadata, digest, checksum, memory, onHeld, ifNoneMatch, ifMatch, signal };
  const object = (await composeWherePossible(job, s3.partLimits)) ?? (await uploadByParts(job));
  // Some servers return another etag here than later.
  return connection.endpoint === undefined ? object : ((await look(s3, key, signal)) ?? object);
}

async function readWhole(body: Upload, buffer: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
  let size = 0;
  for await (const chunk of body.read(0, body.size, { signal })) {
    signal.throwIfAborted();
    if (size + chunk.byteLength <= body.size) buffer.set(chunk, size);
    size += chunk.byteLength;
    if (size > body.size) break;
  }
  if (size !== body.size) throw wrongSize(size, body.size);
  return buffer.subarray(0, size);
}

async function putWhole(
  s3: S3,
  key: string,
  data: Uint8Array,
  { ifNoneMatch, ifMatch, digest, metadata = {}, signal }: Parameters<Store['put']>[2],
): Promise<StoredObject> {
  const { connection } = s3;
  const doing = `write ${key} to ${connection.address}`;
  if (digest !== undefined && digestOf(data) !== digest) {
    throw new CurlewError('DIGEST_MISMATCH', `cannot ${doing}: the bytes do not match the digest`);
  }
  const { checksum, conditions } = await probe(connection, signal);
  if (!conditions && (ifNoneMatch !== undefined || ifMatch !== undefined)) {
    s3.warn();
    await requireConditions(s3, key, { ifNoneMatch, ifMatch }, signal);
  }
  const command = new PutObjectCommand({
    ...connection.target(key),
    Body: data,
    Metadata: { ...metadata },
    ...checksumOf(data, checksum),
    ...(conditions
      ? { IfNoneMatch: ifNoneMatch, IfMatch: ifMatch === undefined ? undefined : quotedEtag(ifMatch) }
      : {}),
  });
  const isCondition = (error: unknown): boolean =>
    isRefusedCondition(error) || (ifMatch !== undefined && nameOf(error) === 'NoSuchKey');
  try {
    const { ETag } = await connection.send({ doing, permission: 's3:PutObject', signal }, command, isCondition);
    return { key, size: data.byteLength, etag: plainEtag(ETag), metadata };
  } catch (error) {
    if (error instanceof CurlewError || signal.aborted || !isCondition(error)) throw error;
    if (attemptsOf(error) > 1) {
      // An earlier attempt may have succeeded although its response was lost.
      const now = await look(s3, key, signal);
      if (now !== undefined && (await hasSameContent(s3, now, data, metadata, signal))) return now;
    }
    throw unmet(connection.address, key, { ifNoneMatch });
  }
}

async function hasSameContent(
  { connection }: S3,
  object: StoredObject,
  data: Uint8Array,
  metadata: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const names = Object.keys(metadata);
  if (object.size !== data.byteLength) return false;
  if (names.some((name) => object.metadata[name] !== metadata[name])) return false;
  let at = 0;
  for await (const chunk of readS3Range(connection, object, { offset: 0, length: object.size }, signal)) {
    if (Buffer.compare(chunk, data.subarray(at, at + chunk.byteLength)) !== 0) return false;
    at += chunk.byteLength;
  }
  return true;
}

async function copy(
  s3: S3,
  fromKey: string,
  toKey: string,
  { from: place, ifNoneMatch, isFree = false, sourceIfMatch, sourceSize, metadata, signal }: CopyOptions,
): Promise<StoredObject> {
  const { connection } = s3;
  const from = connectionOf(connection, place);
  checkedKey(fromKey, from.address);
  const described =
    sourceIfMatch === undefined || sourceSize === undefined || metadata === undefined
      ? undefined
      : { key: fromKey, size: sourceSize, etag: sourceIfMatch, metadata };
  const abilities =
    ifNoneMatch === undefined && described === undefined ? undefined : await probeMultipart(connection, signal);
  // A server that supports conditions on the source checks its etag and existence.
  const known = abilities?.sourceConditions === true ? described : undefined;
  const source = known ?? (await headObject(from, fromKey, signal));
  if (source === undefined) throw missing(from.address, fromKey);
  if (sourceIfMatch !== undefined && source.etag !== sourceIfMatch) throw changed(from.address, fromKey);
  const job = { connection, from, source, key: toKey, limits: s3.copyLimits, signal };
  const copied = metadata ?? source.metadata;
  if (ifNoneMatch === undefined) {
    if (from === connection && fromKey === toKey && metadata === undefined) return source;
    if (source.size <= s3.copyLimits.whole) return copyWhole(job, metadata);
    return copyByParts(job, { metadata: copied, ifNoneMatch });
  }
  if (!isFree) await requireConditions(s3, toKey, { ifNoneMatch }, signal);
  if (source.size === 0) return putWhole(s3, toKey, new Uint8Array(), { metadata: copied, ifNoneMatch, signal });
  if (abilities?.conditions !== true) {
    s3.warn();
    if (isFree) await requireConditions(s3, toKey, { ifNoneMatch }, signal);
  }
  if (abilities?.partCopy !== true && source.size <= s3.copyLimits.whole) return copyWhole(job, metadata);
  return copyByParts(job, { metadata: copied, ifNoneMatch: abilities?.conditions === true ? ifNoneMatch : undefined });
}
