/** One package on its way from one store to another, and the proof that it has arrived as its catalogue says. */
import { digestOfBody } from './object-digest.ts';
import { isDigest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Metadata, Store, StoredObject, Upload } from '../store.ts';
import type { ListedPackage } from './catalogue.ts';
import { packageMetadata } from './upload.ts';

/** `copied` by the server, `streamed` through this machine, or `present` in its place already. */
export type PromoteOutcome = 'copied' | 'streamed' | 'present';

export interface PromotePackageOptions {
  readonly from: Store;
  readonly fromKey: string;
  readonly to: Store;
  readonly key: string;
  readonly deep: boolean;
  readonly dryRun: boolean;
  /** True when the key was taken before this run began. */
  readonly taken: boolean;
  readonly signal: AbortSignal;
}

/** Brings a package into its new place. Its source is pinned: what was checked is what is copied. */
export async function promotePackage(listed: ListedPackage, options: PromotePackageOptions): Promise<PromoteOutcome> {
  const { from, fromKey, to, key, signal } = options;
  if (options.taken && (await isPresent(listed, options))) return 'present';
  const source = await from.head(fromKey, { signal });
  if (source === undefined) {
    throw new CurlewError('NOT_FOUND', `${from.address}: there is no ${fromKey}, which the catalogue names`, {
      hint: 'publish the add-on again into the store it comes from',
    });
  }
  await requireSame(listed, from, source, options);
  const near = from.place.server === to.place.server;
  if (options.dryRun) return near ? 'copied' : 'streamed';
  const metadata = { ...packageMetadata(listed, undefined), ...source.metadata };
  let made: StoredObject;
  try {
    made = near ? await copy(source, metadata, options) : await stream(listed, source, metadata, options);
  } catch (error) {
    // Somebody else was faster: the same package is as good as ours.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    if (await isPresent(listed, options)) return 'present';
    throw error;
  }
  try {
    await requireSame(listed, to, made, options);
    if (near) await requireChecksum(source, made, options);
  } catch (error) {
    // Under this name it would stand in the way of every later run.
    if (error instanceof CurlewError && error.code === 'DIGEST_MISMATCH') await to.delete(key, { signal });
    throw error;
  }
  return near ? 'copied' : 'streamed';
}

/** Where the servers have computed a checksum of all bytes on both sides, by one algorithm. */
async function requireChecksum(
  source: StoredObject,
  made: StoredObject,
  { to, key, signal }: PromotePackageOptions,
): Promise<void> {
  if (source.checksum === undefined) return;
  const { checksum } = made.checksum === undefined ? ((await to.head(key, { signal })) ?? made) : made;
  const algorithm = (text: string): string => text.slice(0, text.indexOf(':'));
  if (checksum === undefined || algorithm(checksum) !== algorithm(source.checksum)) return;
  if (checksum === source.checksum) return;
  throw new CurlewError(
    'DIGEST_MISMATCH',
    `${to.address}: ${key} has not the checksum of the package it was copied from`,
    {
      hint: 'run the same command again; what was copied has been removed',
    },
  );
}

async function copy(
  source: StoredObject,
  metadata: Metadata,
  { from, fromKey, to, key, signal }: PromotePackageOptions,
): Promise<StoredObject> {
  return to.copy(fromKey, key, {
    from: from.place,
    ifNoneMatch: '*',
    sourceIfMatch: source.etag,
    metadata,
    signal,
  });
}

async function stream(
  { entry }: ListedPackage,
  source: StoredObject,
  metadata: Metadata,
  { from, fromKey, to, key, signal }: PromotePackageOptions,
): Promise<StoredObject> {
  const upload = {
    size: source.size,
    async *read(offset: number, length: number, options: Parameters<Upload['read']>[2]) {
      const range = { offset, length };
      const { body } = await from.get(fromKey, { range, ifMatch: source.etag, ...options });
      yield* body;
    },
  };
  return to.put(key, upload, { ifNoneMatch: '*', digest: entry.sha256, metadata, signal });
}

/** True when the package lies in its new place already; another one there is `STORE_CONFLICT`. */
async function isPresent(listed: ListedPackage, options: PromotePackageOptions): Promise<boolean> {
  const { to, key, signal } = options;
  const there = await to.head(key, { signal });
  if (there === undefined) return false;
  try {
    await requireSame(listed, to, there, options);
    return true;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'DIGEST_MISMATCH') throw error;
    throw new CurlewError('STORE_CONFLICT', `${to.address}: ${key} is there already, with other content`, {
      hint: 'a published package never changes: choose another release behind the @ of --to',
      cause: error,
    });
  }
}

/** Length, and digest: as the metadata says, or of the bytes when it says none, and on request. */
async function requireSame(
  { entry }: ListedPackage,
  store: Store,
  object: StoredObject,
  { to, deep, dryRun, signal }: PromotePackageOptions,
): Promise<void> {
  const differs = (what: string): CurlewError =>
    new CurlewError('DIGEST_MISMATCH', `${store.address}: ${object.key} has not the ${what} of its catalogue`, {
      hint: 'the package is damaged: publish the add-on again under another release',
    });
  if (object.size !== entry.size) throw differs('size');
  const noted = object.metadata['sha256'];
  const known = noted !== undefined && isDigest(noted);
  if (known && noted !== entry.sha256) throw differs('digest');
  // What counts is what readers will get, so the bytes are read in their new place.
  if (known && !(deep && (store === to || dryRun))) return;
  if ((await digestOfBody(store, object, { signal })) !== entry.sha256) throw differs('digest');
}
