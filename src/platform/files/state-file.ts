/** State files: complete under their name, or absent. */
import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nameFile } from './name-file.ts';
import { writeAside } from './partial.ts';
import { readLimited, readOpen } from './read-limited.ts';
import { CurlewError, errnoOf, fileError, unless } from '../../core/errors.ts';

/** Writes a file by {@link writeAside}, in `aside`, or in its own folder; an existing file, link or pipe is replaced. */
export async function writeStateFile(
  path: string,
  text: string | Uint8Array,
  mode = 0o600,
  aside = dirname(path),
): Promise<void> {
  try {
    await writeAside(
      aside,
      mode,
      async (file) => file.writeFile(text),
      async (partial) => nameFile(partial, path, true),
    );
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
}

/** The text of {@link readFound}. */
export async function readStateFile(path: string, limit: number): Promise<string | undefined> {
  return (await readFound(path, limit))?.toString('utf8');
}

/**
 * The bytes of a file, or undefined if it does not exist. `FILE_UNUSABLE` if it has more than `limit` bytes or is not a
 * regular file: opening a pipe in its place would block.
 */
export async function readFound(path: string, limit: number): Promise<Buffer | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    // Reading a folder fails with a clear error.
    if (stats.isFile() || stats.isDirectory()) return await readOpen(file, path, limit);
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: not a regular file`, {
      hint: 'find out who put it there, and replace it with the file itself',
    });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(`read ${path}`, error);
  }
}

/** The text at a path from the command line, which may be a pipe or a device, such as bash's `<(…)`. */
export async function readGivenFile(path: string, limit: number): Promise<string | undefined> {
  return (await unless(['NOT_FOUND'], readLimited(path, limit)))?.toString('utf8');
}

/**
 * Like {@link readStateFile}, for files that only this tool writes and that decide what is run: a regular file owned by root
 * or this user that no one else can write to. Anything else in its place is `FILE_UNUSABLE`.
 */
export async function readOwnFile(path: string, limit: number): Promise<string | undefined> {
  try {
    // Opening a pipe would block.
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const problem = strangeness(await file.stat());
    if (problem !== undefined) {
      throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: ${problem}`, {
        hint: 'find out what changed it; if you trust the file, run chown root and chmod 600 on it',
      });
    }
    return await readAll(file, path, limit);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return undefined;
    if (errno !== 'ELOOP') throw fileError(`read ${path}`, error);
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: a symbolic link`, {
      hint: 'find out who put it there, and replace it with the file itself',
    });
  }
}

/** True for a user who is neither root nor the current user, and whose files are therefore not trusted. */
export function isStranger(uid: number): boolean {
  return uid !== 0 && uid !== process.geteuid?.();
}

/** Why a file is not trusted: undefined for a regular file, owned by root or this user, that no one else can write to. */
export function strangeness(stats: Stats): string | undefined {
  if (!stats.isFile()) return 'not a regular file';
  if (isStranger(stats.uid)) return `it belongs to user ${stats.uid}`;
  return (stats.mode & 0o022) === 0
    ? undefined
    : `other users can write to it (mode ${(stats.mode & 0o777).toString(8)})`;
}

/** The whole text of an open file. Larger than `limit` bytes is `FILE_UNUSABLE`. */
export async function readAll(file: FileHandle, path: string, limit: number): Promise<string> {
  return (await readOpen(file, path, limit)).toString('utf8');
}
