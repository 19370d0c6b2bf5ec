/** Files that appear whole: written to a folder of the store's own, synced, then named. */
import { createHash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { copyFile, link, lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Digest } from '../core/digest.ts';
import { CurlewError, errnoOf } from '../core/errors.ts';
import { partialName, sweepPartials } from '../platform/files/partial.ts';
import { syncFolder } from '../platform/files/sync-folder.ts';
import { writeFully } from '../platform/files/write-fully.ts';
import { makeInside, openInside, requireInside } from './folder-inside.ts';
import { HIDDEN } from './key.ts';
import type { Upload } from './store.ts';

/** One folder for all, so that what killed writers left is found wherever it was meant to go. */
function partialFolder(root: string): string {
  return join(root, HIDDEN, 'partial');
}

/** Removes what killed writers left. */
export async function sweepStore(root: string): Promise<void> {
  await requireInside(root, partialFolder(root));
  await sweepPartials(partialFolder(root));
}

/** A file under a partial name, complete and synced. */
export interface Partial {
  readonly path: string;
  readonly size: number;
  readonly digest: Digest;
}

async function partialPath(root: string): Promise<string> {
  await makeInside(root, partialFolder(root));
  return join(partialFolder(root), partialName());
}

/** Writes a partial file, hashed as it passes; removed again when it fails. */
export async function writePartial(
  root: string,
  body: Uint8Array | Upload,
  { signal }: { readonly signal: AbortSignal },
): Promise<Partial> {
  const path = await partialPath(root);
  try {
    const file = await open(path, 'wx', 0o644);
    try {
      const { size, digest } = await fill(file, body, signal);
      await file.sync();
      return { path, size, digest };
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

async function fill(
  file: FileHandle,
  body: Uint8Array | Upload,
  signal: AbortSignal,
): Promise<{ readonly size: number; readonly digest: Digest }> {
  const hash = createHash('sha256');
  const chunks = body instanceof Uint8Array ? [body] : body.read(0, body.size, { signal });
  let size = 0;
  let writing: Promise<void> = Promise.resolve();
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      await writing;
      writing = writeFully(file, chunk, size);
      // Awaited in the next round, so that hashing and reading go on meanwhile.
      writing.catch(() => undefined);
      hash.update(chunk);
      size += chunk.byteLength;
    }
  } finally {
    await writing;
  }
  if (!(body instanceof Uint8Array) && size !== body.size) {
    throw new CurlewError('FETCH_FAILED', `the source gave ${size} bytes, not ${body.size}`);
  }
  return { size, digest: `sha256:${hash.digest('hex')}` };
}

/**
 * A second name for the bytes of a file, under a partial name. An object's file is never written again
 * once it has its name, so two keys may share one; where links are impossible the bytes are cloned or copied.
 */
export async function partialCopy(root: string, source: string, { share }: { share: boolean }): Promise<string> {
  const path = await partialPath(root);
  if (share) {
    try {
      await link(source, path);
      return path;
    } catch (error) {
      if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
    }
  }
  try {
    await copyFile(source, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const file = await open(path, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    return path;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** Gives a partial file its name if the name is free, atomically; false if it is taken. The partial name goes away. */
export async function nameExclusively(root: string, partial: string, target: string): Promise<boolean> {
  try {
    await makeInside(root, dirname(target));
    await link(partial, target);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(partial, { force: true });
  }
  await syncFolder(dirname(target));
  return true;
}

/** Gives a partial file its name, whatever had it before. */
export async function nameReplacing(root: string, partial: string, target: string): Promise<void> {
  await makeInside(root, dirname(target));
  await rename(partial, target);
  // Renaming one of two links of a file to the other does nothing, and leaves both.
  await rm(partial, { force: true });
  await syncFolder(dirname(target));
}

/** sha256 of a file, in hex. */
export async function contentHash(root: string, path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await openInside(root, path);
  try {
    const stream = file.createReadStream({ highWaterMark: 1 << 20, autoClose: false });
    for await (const chunk of stream as AsyncIterable<Buffer>) hash.update(chunk);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}

/** A file as it was found, under the path that no symbolic link is part of. */
export interface FoundFile {
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Undefined when there is no regular file of this name; one outside of the store is `PACKAGE_INVALID`. */
export async function findFile(root: string, path: string): Promise<FoundFile | undefined> {
  try {
    const real = await requireInside(root, path);
    const found = await lstat(real, { bigint: true });
    return found.isFile() ? { path: real, stat: found } : undefined;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
