/** Adds one package to a release: copies it within the store, uploads it, or adopts an existing object. */
import { createHash } from 'node:crypto';
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../../formats/archive/read.ts';
import type { Digest } from '../../core/digest.ts';
import { digestOfObject } from './object-digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import type { AddonJson } from '../../core/package.ts';
import { formatRef } from '../../core/ref.ts';
import { openStoreSource } from '../store/source.ts';
import type { ListedObject, Metadata, Store, StoredObject, Upload } from '../store/store.ts';
import { fileOf, listPackage, type ListedPackage } from './make-catalog.ts';
import type { RecordedPackage } from './release-inputs.ts';

/** A package file from the builder. */
export interface PackageFileToPublish {
  readonly path: string;
  readonly addon: AddonJson;
  /** The index at build time, if known. */
  readonly index?: Pick<ArchiveIndex, 'tocDigest'> | undefined;
  /** Build inputs to record with the release. */
  readonly inputs?: unknown;
}

/** A package for a new release: a file, the same package (by digest) of an earlier release, or both. */
export type PackageToPlace =
  | { readonly file: PackageFileToPublish; readonly earlier: EarlierPackage | undefined }
  | { readonly file: undefined; readonly earlier: EarlierPackage };

/** Its catalog entry. SHA-256 and size are known only for a package of an earlier release. */
export function listedOf(requested: PackageToPlace): ListedPackage {
  if (requested.file === undefined) return requested.earlier.listed;
  return requested.earlier?.listed ?? listPackage(requested.file.addon, NOT_HASHED);
}

export interface EarlierPackage {
  readonly release: string;
  readonly listed: ListedPackage;
  /** Its object; undefined if it is missing or its size differs from the catalog. */
  readonly object: ListedObject | undefined;
  /** Its build inputs; undefined if not recorded. */
  readonly recorded: RecordedPackage | undefined;
}

export type UploadOutcome = 'uploaded' | 'copied' | 'present';

/** The release has a different object under the key. Publishing under another release string may succeed. */
export class OtherContent extends CurlewError {}

export interface PlacedObject {
  readonly listed: ListedPackage;
  readonly outcome: UploadOutcome;
  /** Bytes sent; less than the size if an interrupted upload was resumed. */
  readonly sent: number;
  /** The new object; undefined if it already existed. */
  readonly object?: StoredObject;
}

export interface PlaceOptions {
  readonly store: Store;
  readonly release: string;
  /** Git commit for the metadata, if known. */
  readonly commit: string | undefined;
  /** True if the release was empty before: a copy then does not check its key first. */
  readonly fresh: boolean;
  /** True if the catalog will be signed: then it must not contain unverified data from the store. */
  readonly signed: boolean;
  readonly signal: AbortSignal;
}

/** Adds a package to the release. An object with different content under its key is `STORE_CONFLICT`. */
export async function placePackage(requested: PackageToPlace, options: PlaceOptions): Promise<PlacedObject> {
  const { file, earlier } = requested;
  const { release } = options;
  if (earlier !== undefined && earlier.release === release && earlier.object !== undefined) {
    return { listed: earlier.listed, outcome: 'present', sent: 0 };
  }
  const isCopy = earlier?.object !== undefined && earlier.release !== release;
  // A check before an upload saves time. A copy is cheap, and the server refuses it if the key exists.
  const adopted = isCopy && options.fresh ? undefined : await adopt(requested, options);
  if (adopted !== undefined) return adopted;
  try {
    if (earlier?.object !== undefined && isCopy) return await copyPackage(earlier, earlier.object, options);
    if (file !== undefined) return await uploadPackage(file, options);
  } catch (error) {
    // Another publisher was faster. The same package is fine.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    const now = await adopt(requested, options);
    if (now === undefined) throw error;
    return now;
  }
  const name = earlier === undefined ? 'a package' : formatRef(earlier.listed);
  throw new CurlewError('NOT_FOUND', `${options.store.address}: ${name} of ${earlier?.release ?? release} is missing`, {
    hint: 'publish the add-on again from its folder',
  });
}

async function copyPackage(
  { listed, release: from, recorded }: EarlierPackage,
  object: ListedObject,
  { store, release, signal }: PlaceOptions,
): Promise<PlacedObject> {
  const key = fileOf(listed);
  const copied = await store.copy(storeKey.package(from, key), storeKey.package(release, key), {
    ifNoneMatch: '*',
    isFree: true,
    sourceIfMatch: object.etag,
    sourceSize: object.size,
    metadata: recorded?.commit === undefined ? undefined : packageMetadata(listed, recorded.commit),
    signal,
  });
  if (copied.size !== listed.entry.size) {
    throw new CurlewError('DIGEST_MISMATCH', `${store.address}: ${copied.key} does not have the size in its catalog`);
  }
  return { listed, outcome: 'copied', sent: 0, object: copied };
}

async function uploadPackage(
  file: PackageFileToPublish,
  { store, release, commit, signal }: PlaceOptions,
): Promise<PlacedObject> {
  await using source = await openFileSource(file.path);
  const sha256 = await hashSource(source, signal);
  const { tocDigest: toc } = await readIndex(source, { signal });
  if (file.index !== undefined && file.index.tocDigest !== toc) {
    throw new CurlewError('DIGEST_MISMATCH', `cannot upload ${file.path}: the file has changed since the build`, {
      hint: 'another process writes to that folder: build into a separate folder with --out',
    });
  }
  const listed = listPackage(file.addon, { sha256, toc, size: source.size });
  let skipped = 0;
  const object = await store.put(storeKey.package(release, fileOf(listed)), source, {
    ifNoneMatch: '*',
    isFree: true,
    digest: sha256,
    onHeld: (bytes) => {
      skipped += bytes;
    },
    metadata: packageMetadata(listed, commit),
    signal,
  });
  return { listed, outcome: 'uploaded', sent: source.size - skipped, object };
}

/** Metadata of a package's object (design: store and releases). */
export function packageMetadata({ entry }: ListedPackage, commit: string | undefined): Metadata {
  return { digest: entry.digest, sha256: entry.sha256, ...(commit === undefined ? {} : { gitsha: commit }) };
}

const MEMORY = 1 << 20;

async function hashSource(source: Upload, signal: AbortSignal): Promise<Digest> {
  const hash = createHash('sha256');
  // One buffer for all reads: each chunk is hashed before the next is read.
  const memory = Buffer.allocUnsafeSlow(Math.min(MEMORY, Math.max(1, source.size)));
  const allocate = (length: number): Uint8Array => memory.subarray(0, length);
  for await (const chunk of source.read(0, source.size, { signal, allocate })) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** Uses the object under the key if it is the same package; undefined if the key is free. */
async function adopt(
  requested: PackageToPlace,
  { store, release, signed, signal }: PlaceOptions,
): Promise<PlacedObject | undefined> {
  const { file, earlier } = requested;
  const object = await store.head(storeKey.package(release, fileOf(listedOf(requested))), { signal });
  if (object === undefined) return undefined;
  const sha256 = await digestOfObject(store, object, { signal });
  const { size } = object;
  if (earlier !== undefined && sha256 === earlier.listed.entry.sha256)
    return { listed: earlier.listed, outcome: 'present', sent: 0 };
  if (!signed && file !== undefined && object.metadata['digest'] === file.addon.digest) {
    const { tocDigest: toc } = await readIndex(await openStoreSource(store, object.key, { signal }), { signal });
    return { listed: listPackage(file.addon, { sha256, toc, size }), outcome: 'present', sent: 0 };
  }
  if (file !== undefined) {
    await using source = await openFileSource(file.path);
    if (source.size === size && (await hashSource(source, signal)) === sha256) {
      const { tocDigest: toc } = await readIndex(source, { signal });
      return { listed: listPackage(file.addon, { sha256, toc, size }), outcome: 'present', sent: 0 };
    }
  }
  throw new OtherContent('STORE_CONFLICT', `${store.address}: ${object.key} already exists with different content`, {
    hint: 'a published package never changes: use another release, or increase the version of the add-on',
  });
}

const NOT_HASHED = { sha256: `sha256:${'0'.repeat(64)}`, size: 0 } as const;
