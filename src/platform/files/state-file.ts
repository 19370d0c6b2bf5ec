/** State files: whole under their name, or not at all. */
import { constants, createReadStream, type Stats } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { partialName, sweepPartials } from './partial.ts';
import { syncFolder } from './sync-folder.ts';
import { writeNew } from './write-new.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

/**
 * Writes beside the file, under a name that nobody can have taken before, syncs, renames, syncs the folder. What killed
 * writers have left in the folder is removed.
 */
export async function writeStateFile(path: string, text: string | Uint8Array, mode = 0o600): Promise<void> {
  const folder = dirname(path);
  const partial = join(folder, partialName());
  try {
    await sweepPartials(folder);
    await writeNew(partial, text, mode);
    await rename(partial, path);
    await syncFolder(folder);
  } catch (error) {
    await rm(partial, { force: true }).catch(() => undefined);
    throw fileError(`write ${path}`, error);
  }
}

/** The text of {@link readFound}. */
export async function readStateFile(path: string, limit: number): Promise<string | undefined> {
  return (await readFound(path, limit))?.toString('utf8');
}

/**
 * The bytes of a file that is looked for, or undefined when there is none. Larger than `limit` bytes is `FILE_UNUSABLE`, and so is
 * anything but a regular file: somebody may have put a pipe in its place, which would be waited for.
 */
export async function readFound(path: string, limit: number): Promise<Buffer | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await file.stat();
    // Of a folder, reading says what it is.
    if (found.isFile() || found.isDirectory()) return await bytesOf(streamOf(file), path, limit);
    throw new CurlewError('FILE_UNUSABLE', `read ${path}: not a regular file`, {
      hint: 'see who put it there, and put the file itself in its place',
    });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(`read ${path}`, error);
  } finally {
    await file?.close();
  }
}

/** The text at a path that somebody gives on the command line: of a pipe or a device, too, such as `<(…)` of bash. */
export async function readGivenFile(path: string, limit: number): Promise<string | undefined> {
  try {
    return (await bytesOf(createReadStream(path) as AsyncIterable<Buffer>, path, limit)).toString('utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(`read ${path}`, error);
  }
}

/**
 * The same of a file that only this tool writes, and that decides what is run: a regular file, of root or of this user,
 * that nobody else can write to. Anything else in its place is `FILE_UNUSABLE`.
 */
export async function readOwnFile(path: string, limit: number): Promise<string | undefined> {
  let file: FileHandle | undefined;
  try {
    // A pipe would be waited for.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const problem = strangeness(await file.stat());
    if (problem !== undefined) {
      throw new CurlewError('FILE_UNUSABLE', `read ${path}: ${problem}`, {
        hint: 'see who did that; if it can be trusted all the same, give it to root with mode 600',
      });
    }
    return await readAll(file, path, limit);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return undefined;
    if (errno !== 'ELOOP') throw fileError(`read ${path}`, error);
    throw new CurlewError('FILE_UNUSABLE', `read ${path}: a symbolic link`, {
      hint: 'see who put it there, and put the file itself in its place',
    });
  } finally {
    await file?.close();
  }
}

/** True for whoever is neither root nor the user who runs this: what belongs to them is not believed. */
export function isStranger(uid: number): boolean {
  return uid !== 0 && uid !== process.geteuid?.();
}

/** What keeps a file from being believed: undefined for a regular one, of root or of this user, that nobody else can write to. */
export function strangeness(found: Stats): string | undefined {
  if (!found.isFile()) return 'not a regular file';
  if (isStranger(found.uid)) return `it belongs to user ${found.uid}`;
  return (found.mode & 0o022) === 0 ? undefined : `others may write to it (mode ${(found.mode & 0o777).toString(8)})`;
}

/** All of an open file from its beginning, as text. Larger than `limit` bytes is `FILE_UNUSABLE`. */
export async function readAll(file: FileHandle, path: string, limit: number): Promise<string> {
  return (await bytesOf(streamOf(file), path, limit)).toString('utf8');
}

function streamOf(file: FileHandle): AsyncIterable<Buffer> {
  return file.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>;
}

async function bytesOf(stream: AsyncIterable<Buffer>, path: string, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Counted while reading: a pipe or a device has no size to ask for.
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > limit) throw new CurlewError('FILE_UNUSABLE', `read ${path}: larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
