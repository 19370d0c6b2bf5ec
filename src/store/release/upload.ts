/** One package on its way into a release: copied inside the store, uploaded, or there already. */
import { createHash } from 'node:crypto';
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../../formats/archive/read.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import type { AddonJson } from '../../core/package.ts';
import { formatRef } from '../../core/ref.ts';
import { openStoreSource } from '../source.ts';
import type { ListedObject, Metadata, Store, StoredObject, Upload } from '../store.ts';
import { fileOf, listPackage, type ListedPackage } from './catalogue.ts';
import type { RecordedPackage } from './inputs.ts';

/** A package file that the builder has made. */
export interface PackageFileToPublish {
  readonly path: string;
  readonly addon: AddonJson;
  /** As it was built; undefined where nobody knows. */
  readonly index?: Pick<ArchiveIndex, 'tocDigest'> | undefined;
  /** What its build saw, to be recorded with the release. */
  readonly inputs?: unknown;
}

/** A package of a release to be: with a file, or one that an earlier release has (the same by its digest), or both. */
export type Wanted =
  | { readonly file: PackageFileToPublish; readonly earlier: EarlierPackage | undefined }
  | { readonly file: undefined; readonly earlier: EarlierPackage };

/** What the catalogue will say of it; digest and size of the file are known only for an earlier one. */
export function listedOf(wanted: Wanted): ListedPackage {
  if (wanted.file === undefined) return wanted.earlier.listed;
  return wanted.earlier?.listed ?? listPackage(wanted.file.addon, NOT_HASHED);
}

export interface EarlierPackage {
  readonly release: string;
  readonly listed: ListedPackage;
  /** What lies there; undefined when it has vanished or has another size than its catalogue says. */
  readonly object: ListedObject | undefined;
  /** What made it; undefined when that was not recorded. */
  readonly recorded: RecordedPackage | undefined;
}

export type Outcome = 'uploaded' | 'copied' | 'present';

/** What lies in a release is not what was to be put there: another release string may do. */
export class OtherContent extends CurlewError {}

export interface Placed {
  readonly listed: ListedPackage;
  readonly outcome: Outcome;
  /** Bytes that went over the wire; the rest of an upload that was cut off is there already. */
  readonly sent: number;
  /** In its place; undefined when it was there before. */
  readonly object?: StoredObject;
}

export interface PlaceOptions {
  readonly store: Store;
  readonly release: string;
  /** Git commit that goes into the metadata, when known. */
  readonly commit: string | undefined;
  /** True when nothing was put into the release before: then a copy does not look at its key first. */
  readonly fresh: boolean;
  /** True when the catalogue will be signed: nothing that the store says of a package may stand in it. */
  readonly signed: boolean;
  readonly signal: AbortSignal;
}

/** Brings a package under its key of the release. Other content there is `STORE_CONFLICT`. */
export async function placePackage(wanted: Wanted, options: PlaceOptions): Promise<Placed> {
  const { file, earlier } = wanted;
  const { release } = options;
  if (earlier !== undefined && earlier.release === release && earlier.object !== undefined) {
    return { listed: earlier.listed, outcome: 'present', sent: 0 };
  }
  const isCopy = earlier?.object !== undefined && earlier.release !== release;
  // An upload costs much, a copy little: the server refuses it anyway where something lies.
  const there = isCopy && options.fresh ? undefined : await adopt(wanted, options);
  if (there !== undefined) return there;
  try {
    if (earlier?.object !== undefined && isCopy) return await copyPackage(earlier, earlier.object, options);
    if (file !== undefined) return await uploadPackage(file, options);
  } catch (error) {
    // Another publisher was faster: the same package is as good as ours.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    const now = await adopt(wanted, options);
    if (now === undefined) throw error;
    return now;
  }
  const name = earlier === undefined ? 'a package' : formatRef(earlier.listed);
  throw new CurlewError(
    'NOT_FOUND',
    `${options.store.address}: ${name} of ${earlier?.release ?? release} has vanished`,
    {
      hint: 'publish this add-on again from its folder',
    },
  );
}

async function copyPackage(
  { listed, release: from, recorded }: EarlierPackage,
  object: ListedObject,
  { store, release, signal }: PlaceOptions,
): Promise<Placed> {
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
    throw new CurlewError('DIGEST_MISMATCH', `${store.address}: ${copied.key} has not the size of its catalogue`);
  }
  return { listed, outcome: 'copied', sent: 0, object: copied };
}

async function uploadPackage(
  file: PackageFileToPublish,
  { store, release, commit, signal }: PlaceOptions,
): Promise<Placed> {
  await using source = await openFileSource(file.path);
  const sha256 = await hashSource(source, signal);
  const { tocDigest: toc } = await readIndex(source, { signal });
  if (file.index !== undefined && file.index.tocDigest !== toc) {
    throw new CurlewError('DIGEST_MISMATCH', `upload ${file.path}: it is not the package that was built`, {
      hint: 'somebody else writes to that folder: build into one of your own, with --out',
    });
  }
  const listed = listPackage(file.addon, { sha256, toc, size: source.size });
  let held = 0;
  const object = await store.put(storeKey.package(release, fileOf(listed)), source, {
    ifNoneMatch: '*',
    isFree: true,
    digest: sha256,
    onHeld: (bytes) => {
      held += bytes;
    },
    metadata: packageMetadata(listed, commit),
    signal,
  });
  return { listed, outcome: 'uploaded', sent: source.size - held, object };
}

/** Metadata of a package's object (design: store and releases). */
export function packageMetadata({ entry }: ListedPackage, commit: string | undefined): Metadata {
  return { digest: entry.digest, sha256: entry.sha256, ...(commit === undefined ? {} : { gitsha: commit }) };
}

const MEMORY = 1 << 20;

async function hashSource(source: Upload, signal: AbortSignal): Promise<Digest> {
  const hash = createHash('sha256');
  // One piece of memory for all of it: each chunk is done with before the next is read.
  const memory = Buffer.allocUnsafeSlow(Math.min(MEMORY, Math.max(1, source.size)));
  const allocate = (length: number): Uint8Array => memory.subarray(0, length);
  for await (const chunk of source.read(0, source.size, { signal, allocate })) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** Takes what lies under the key for ours if it is the same package; undefined when the key is free. */
async function adopt(wanted: Wanted, { store, release, signed, signal }: PlaceOptions): Promise<Placed | undefined> {
  const { file, earlier } = wanted;
  const object = await store.head(storeKey.package(release, fileOf(listedOf(wanted))), { signal });
  if (object === undefined) return undefined;
  const sha256 = await digestOfObject(store, object, signal);
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
  throw new OtherContent('STORE_CONFLICT', `${store.address}: ${object.key} is there already, with other content`, {
    hint: 'a published package never changes: choose another release, or raise the version of the add-on',
  });
}

const NOT_HASHED = { sha256: `sha256:${'0'.repeat(64)}`, size: 0 } as const;

/** As its metadata says; read and hashed when it has none. */
async function digestOfObject(store: Store, object: StoredObject, signal: AbortSignal): Promise<Digest> {
  const noted = object.metadata['sha256'];
  if (noted !== undefined && isDigest(noted)) return noted;
  const { body } = await store.get(object.key, { ifMatch: object.etag, signal });
  return hashSource({ size: object.size, read: () => body }, signal);
}
