/** Copies one package from one store to another and verifies the copy against the catalog. */
import { digestOfBody, notedDigest } from './object-digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Metadata, Store, StoredObject, Upload } from '../store/store.ts';
import type { ListedPackage } from './make-catalog.ts';
import { packageMetadata } from './upload.ts';

/** `copied` by the server, `streamed` through this machine, or `present` if it already existed. */
export type PromoteOutcome = 'copied' | 'streamed' | 'present';

export interface PromotePackageOptions {
  readonly from: Store;
  readonly fromKey: string;
  readonly to: Store;
  readonly key: string;
  readonly deep: boolean;
  readonly dryRun: boolean;
  /** True if the key existed when this run began. */
  readonly exists: boolean;
  readonly signal: AbortSignal;
}

/** Copies a package to the target store. The source is pinned by its etag, so the copied bytes are the checked ones. */
export async function promotePackage(listed: ListedPackage, options: PromotePackageOptions): Promise<PromoteOutcome> {
  const { from, fromKey, to, key, signal } = options;
  if (options.exists && (await isPresent(listed, options))) return 'present';
  const source = await from.head(fromKey, { signal });
  if (source === undefined) {
    throw new CurlewError('NOT_FOUND', `${from.address}: ${fromKey} is in the catalog but does not exist`, {
      hint: 'publish the add-on to the source store again',
    });
  }
  await requireSame(listed, from, source, options);
  const sameServer = from.place.server === to.place.server;
  if (options.dryRun) return sameServer ? 'copied' : 'streamed';
  const metadata = { ...packageMetadata(listed, undefined), ...source.metadata };
  let copied: StoredObject;
  try {
    copied = sameServer ? await copy(source, metadata, options) : await stream(listed, source, metadata, options);
  } catch (error) {
    // Another process was faster. The same package is fine.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    if (await isPresent(listed, options)) return 'present';
    throw error;
  }
  try {
    await requireSame(listed, to, copied, options);
    if (sameServer) await requireChecksum(source, copied, options);
  } catch (error) {
    // Under this key it would make every later run fail.
    if (error instanceof CurlewError && error.code === 'DIGEST_MISMATCH') await to.delete(key, { signal });
    throw error;
  }
  return sameServer ? 'copied' : 'streamed';
}

/** Compares whole-object checksums if both servers have computed one with the same algorithm. */
async function requireChecksum(
  source: StoredObject,
  copied: StoredObject,
  { to, key, signal }: PromotePackageOptions,
): Promise<void> {
  if (source.checksum === undefined) return;
  const { checksum } = copied.checksum === undefined ? ((await to.head(key, { signal })) ?? copied) : copied;
  const algorithm = (text: string): string => text.slice(0, text.indexOf(':'));
  if (checksum === undefined || algorithm(checksum) !== algorithm(source.checksum)) return;
  if (checksum === source.checksum) return;
  throw new CurlewError('DIGEST_MISMATCH', `${to.address}: ${key} does not have the checksum of its source`, {
    hint: 'run the same command again; the copy has been removed',
  });
}

async function copy(
  source: StoredObject,
  metadata: Metadata,
  { from, fromKey, to, key, signal }: PromotePackageOptions,
): Promise<StoredObject> {
  return to.copy(fromKey, key, { from: from.place, ifNoneMatch: '*', sourceIfMatch: source.etag, metadata, signal });
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

/** True if the target already has the package; a different object under its key is `STORE_CONFLICT`. */
async function isPresent(listed: ListedPackage, options: PromotePackageOptions): Promise<boolean> {
  const { to, key, signal } = options;
  const existing = await to.head(key, { signal });
  if (existing === undefined) return false;
  try {
    await requireSame(listed, to, existing, options);
    return true;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'DIGEST_MISMATCH') throw error;
    throw new CurlewError('STORE_CONFLICT', `${to.address}: ${key} already exists with different content`, {
      hint: 'a published package never changes: use another release after the @ of --to',
      cause: error,
    });
  }
}

/** Checks the size and the digest: from the metadata, or computed from the bytes if it is missing there or `deep` is set. */
async function requireSame(
  { entry }: ListedPackage,
  store: Store,
  object: StoredObject,
  { to, deep, dryRun, signal }: PromotePackageOptions,
): Promise<void> {
  const differs = (what: string): CurlewError =>
    new CurlewError('DIGEST_MISMATCH', `${store.address}: ${object.key} does not have the ${what} in its catalog`, {
      hint: 'the package is damaged: publish the add-on again in another release',
    });
  if (object.size !== entry.size) throw differs('size');
  const noted = notedDigest(object);
  if (noted !== undefined && noted !== entry.sha256) throw differs('digest');
  // A deep check reads the copy, since that is what readers get.
  if (noted !== undefined && !(deep && (store === to || dryRun))) return;
  if ((await digestOfBody(store, object, { signal })) !== entry.sha256) throw differs('digest');
}
