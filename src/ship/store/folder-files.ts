/** Atomic file creation: a file is written to the store's hidden folder, synced, then renamed or linked to its final name. */
import { createHash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { copyFile, link, lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import type { Digest } from '../../core/digest.ts';
import { atPath, errnoOf, succeeds, unlessMissing } from '../../core/errors.ts';
import { partialName, sweepPartials } from '../../platform/files/partial.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { makeInside, nameInside, openInside, requireInside } from './folder-inside.ts';
import { HIDDEN } from './key.ts';
import { wrongSize } from './refusals.ts';
import type { Upload } from './store.ts';

/** One folder for all partial files, so that those of killed writers can be found. */
function partialFolder(root: string): string {
  return join(root, HIDDEN, 'partial');
}

/** Removes partial files of killed writers. */
export async function sweepStore(root: string): Promise<void> {
  await requireInside(root, partialFolder(root));
  await sweepPartials(partialFolder(root));
}

/** A complete and synced file under a temporary name. */
export interface Partial {
  readonly path: string;
  readonly size: number;
  readonly digest: Digest;
}

async function partialPath(root: string): Promise<string> {
  await makeInside(root, partialFolder(root));
  return join(partialFolder(root), partialName());
}

/** Writes a partial file and computes its digest. Removes the file on failure. */
export async function writePartial(root: string, body: Uint8Array | Upload, { signal }: Cancellable): Promise<Partial> {
  const path = await partialPath(root);
  try {
    await using file = await open(path, 'wx', 0o644);
    const { size, digest } = await fill(file, body, signal);
    await file.sync().catch(atPath(path));
    return { path, size, digest };
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
      // Awaited in the next iteration, so that hashing and reading continue meanwhile.
      writing.catch(() => undefined);
      hash.update(chunk);
      size += chunk.byteLength;
    }
  } finally {
    await writing;
  }
  if (!(body instanceof Uint8Array) && size !== body.size) {
    throw wrongSize(size, body.size);
  }
  return { size, digest: `sha256:${hash.digest('hex')}` };
}

/**
 * Links a file to a partial name. An object's file is never modified after it has its final name, so two keys may share
 * one inode. If the file system cannot link, the bytes are cloned or copied.
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
      await file.sync().catch(atPath(path));
    } finally {
      await file.close();
    }
    return path;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** Gives a partial file its final name atomically; false if that name exists. Removes the partial name in either case. */
export async function nameExclusively(root: string, partial: string, target: string): Promise<boolean> {
  try {
    return await succeeds(
      ['EEXIST'],
      nameInside(root, dirname(target), async () => link(partial, target)),
    );
  } finally {
    await rm(partial, { force: true });
  }
}

/** Gives a partial file its final name and replaces an existing file. */
export async function nameReplacing(root: string, partial: string, target: string): Promise<void> {
  await nameInside(root, dirname(target), async () => rename(partial, target));
  // rename(2) does nothing if both names are links to the same file.
  await rm(partial, { force: true });
}

/** SHA-256 of a file, in hex. */
export async function contentHash(root: string, path: string): Promise<string> {
  const hash = createHash('sha256');
  await using file = await openInside(root, path);
  const stream = file.createReadStream({ highWaterMark: 1 << 20, autoClose: false });
  for await (const chunk of stream as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

/** A file, with its real path and the result of `lstat`. */
export interface FoundFile {
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Undefined if the path is not a regular file; `PACKAGE_INVALID` if it resolves to a place outside of the store. */
export async function findFile(root: string, path: string): Promise<FoundFile | undefined> {
  const look = async (real: string): Promise<FoundFile | undefined> => {
    const stats = await lstat(real, { bigint: true });
    return stats.isFile() ? { path: real, stat: stats } : undefined;
  };
  return unlessMissing(requireInside(root, path).then(look));
}
