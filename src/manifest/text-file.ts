/** Reading small text files of an add-on: bounded, regular files only, never waiting on a pipe. */
import { constants, type Stats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { errnoOf, fileError } from '../core/errors.ts';

export type TextFile =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'absent' }
  /** Not a regular file. */
  | { readonly kind: 'special' }
  | { readonly kind: 'too-large' };

/** What is at a path, without following a link; undefined when nothing is. Throws `FILE_UNUSABLE` for other errors. */
export async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    throw fileError(`look at ${path}`, error);
  }
}

/**
 * A whole file of at most `limit` bytes as text; bytes that are not UTF-8 become U+FFFD, a byte order mark is kept.
 * Throws `FILE_UNUSABLE` when it cannot be read.
 */
export async function readTextFile(
  path: string,
  limit: number,
  { signal }: { readonly signal: AbortSignal },
): Promise<TextFile> {
  signal.throwIfAborted();
  const stats = await statOf(path);
  if (stats === undefined) return { kind: 'absent' };
  if (!stats.isFile()) return { kind: 'special' };
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    // One byte more than allowed tells a file that grew since it was looked at.
    const buffer = Buffer.alloc(Math.min(stats.size, limit) + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > limit || length > stats.size) return { kind: 'too-large' };
    return { kind: 'text', text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(buffer.subarray(0, length)) };
  } catch (error) {
    throw fileError(`read ${path}`, error);
  }
}
