/**
 * Files that an earlier run has left unfinished. Their names can be guessed, and any user may be able to write to the
 * folder: files and links that other users put there are neither followed, nor written to, nor trusted.
 */
import type { Stats } from 'node:fs';
import { constants, open, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { partialName } from './partial.ts';
import { readAll, strangeness } from './state-file.ts';

/** Opening a pipe would block. */
const FLAGS = { read: constants.O_RDONLY, write: constants.O_RDWR } as const;
const NEVER_FOLLOW = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const MAX_TRIES = 3;

/**
 * Opens a regular file of this user that has no other hard link and that no one else can write to. Undefined if it does not
 * exist; anything else in its place is `FILE_UNUSABLE`.
 */
export async function openLeft(path: string, access: keyof typeof FLAGS): Promise<FileHandle | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS[access] | NEVER_FOLLOW);
    const problem = await problemOf(path, await file.stat());
    if (problem !== undefined) throw notOurs(path, problem);
    return file;
  } catch (error) {
    await file?.close();
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return undefined;
    throw errno === 'ELOOP' ? notOurs(path, 'a symbolic link') : fileError(`open ${path}`, error);
  }
}

/** {@link openLeft} for writing; a missing file is created exclusively. */
export async function openOrMake(path: string, mode = 0o644): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    const handle = await openLeft(path, 'write');
    if (handle !== undefined) return handle;
    try {
      return await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, mode);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST' || tries === MAX_TRIES) throw fileError(`write ${path}`, error);
    }
  }
}

/** The text of such a file, or undefined if it does not exist. Larger than `limit` bytes is `FILE_UNUSABLE`. */
export async function readLeft(path: string, limit: number): Promise<string | undefined> {
  await using file = await openLeft(path, 'read');
  return file === undefined ? undefined : await readAll(file, path, limit);
}

function notOurs(path: string, problem: string): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `cannot open ${path}: not a file of an earlier run: ${problem}`, {
    hint: 'find out who put it there, remove it, then run the same command again',
  });
}

async function problemOf(path: string, stats: Stats): Promise<string | undefined> {
  if (stats.isFile() && stats.nlink > 1) return 'the file has another hard link';
  const problem = strangeness(stats);
  if (problem === undefined || !stats.isFile()) return problem;
  return (await isAsMadeHere(path, stats)) ? undefined : problem;
}

async function isAsMadeHere(path: string, stats: Stats): Promise<boolean> {
  const made = await statsOfNew(dirname(path), 0o600);
  return made?.uid === stats.uid && (made.mode & 0o022) === (stats.mode & 0o022);
}

/**
 * What a new file in this folder is that is created with this mode, which the umask limits; undefined if none can be created.
 * File systems of other operating systems give all files the same owner and mode, and a file server may assign its own.
 */
export async function statsOfNew(folder: string, mode: number): Promise<Stats | undefined> {
  const probe = join(folder, partialName());
  try {
    await using file = await open(probe, 'wx', mode);
    return await file.stat();
  } catch {
    return undefined;
  } finally {
    await rm(probe, { force: true }).catch(() => undefined);
  }
}
