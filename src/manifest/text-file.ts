/**
 * Reads small text files of an add-on: bounded, regular files only, never blocking on a pipe.
 *
 * Uses synchronous calls: hundreds of add-ons need thousands of calls of microseconds each, for which the thread pool costs
 * ten times as much.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { errnoOf, fileError } from '../core/errors.ts';

type Unread =
  | { readonly kind: 'absent' }
  /** Not a regular file. */
  | { readonly kind: 'special' }
  | { readonly kind: 'too-large' };

export type TextFile = { readonly kind: 'text'; readonly text: string } | Unread;

export type BytesFile = { readonly kind: 'bytes'; readonly bytes: Buffer } | Unread;

/** The stats of a path, without following a link; undefined if it does not exist. Throws `FILE_UNUSABLE` for other errors. */
export function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A parent of the path is a file.
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError(`read ${path}`, error);
  }
}

/** A whole file of at most `limit` bytes as text, by `decodeText`. Throws `FILE_UNUSABLE` if it cannot be read. */
export function readTextFile(path: string, limit: number): TextFile {
  const read = readBytesFile(path, limit);
  return read.kind === 'bytes' ? { kind: 'text', text: decodeText(read.bytes) } : read;
}

/** Decodes UTF-8: invalid bytes become U+FFFD, a byte order mark is kept. */
export function decodeText(bytes: Buffer): string {
  // Most texts are ASCII, which the other decoder only copies.
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8');
}

const REPLACEMENT = Buffer.from('\u{FFFD}');

/**
 * Whether bytes are UTF-8 without U+FFFD and without control characters except tab, LF and CR. Checks four bytes at a time: a
 * regular expression over the text takes several times as long.
 */
export function isCleanText(bytes: Buffer): boolean {
  const words = bytes.byteOffset % 4 === 0 ? bytes.length >> 2 : 0;
  const view = new Int32Array(bytes.buffer, words === 0 ? 0 : bytes.byteOffset, words);
  for (let at = 0; at < words; at += 1) {
    const word = view[at] ?? 0;
    const deleted = word ^ 0x7f7f7f7f;
    // Some byte is less than a blank, or DEL; a byte above 127 never counts.
    if (((((word - 0x20202020) & ~word) | ((deleted - 0x01010101) & ~deleted)) & 0x80808080) === 0) continue;
    if (!isCleanPart(bytes, at * 4, at * 4 + 4)) return false;
  }
  return (
    isCleanPart(bytes, words * 4, bytes.length) && (isAscii(bytes) || (isUtf8(bytes) && !bytes.includes(REPLACEMENT)))
  );
}

function isCleanPart(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x20 ? byte !== 0x0a && byte !== 0x0d && byte !== 0x09 : byte === 0x7f) return false;
  }
  return true;
}

/** A whole file of at most `limit` bytes, valid until the next call. Throws `FILE_UNUSABLE` if it cannot be read. */
export function readBytesFile(path: string, limit: number): BytesFile {
  const stats = statOf(path);
  if (stats === undefined) return { kind: 'absent' };
  if (!stats.isFile()) return { kind: 'special' };
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return fstatSync(file).isFile() ? readAll(file, limit, stats.size) : { kind: 'special' };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw fileError(`read ${path}`, error);
  }
}

/** One buffer for all files: allocating a new one takes longer than reading into it. */
let buffer = Buffer.alloc(0);
const MAX_KEPT = 16 * 1024 * 1024;

function bufferOf(size: number): Buffer {
  if (size > MAX_KEPT) return Buffer.alloc(size);
  if (buffer.length < size) buffer = Buffer.alloc(Math.max(size, 1024 * 1024));
  return buffer.subarray(0, size);
}

function readAll(file: number, limit: number, expected: number): BytesFile {
  // One byte more than allowed detects a file that is larger, or that has grown since stat.
  const buffer = bufferOf(Math.min(expected, limit) + 1);
  let length = 0;
  while (length < buffer.length) {
    const read = readSync(file, buffer, { offset: length });
    if (read === 0) break;
    length += read;
  }
  if (length === buffer.length) return { kind: 'too-large' };
  return { kind: 'bytes', bytes: buffer.subarray(0, length) };
}
