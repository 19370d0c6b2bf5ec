/** The uncompressed bytes of what container tools compress, within limits: gzip, zstd, or as it is. Hostile input. */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import type { Bytes } from '../../core/bytes.ts';
import { asError, errnoOf, type CurlewError } from '../../core/errors.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';

/** Creates the error for bytes from outside. */
export type BadArchive = (what: string, cause?: unknown) => CurlewError;

/** An unpacked tar may be this many times larger; a gzip bomb is about 1000 times larger. */
const MAX_RATIO = 200;
const ALWAYS_ALLOWED = 64 << 20;
const READ_SIZE = 1 << 20;

interface Packed {
  /** How many bytes it has. */
  readonly size: number;
  /** What it may unpack to whatever its ratio; default: 64 MiB. */
  readonly allowed?: number;
  /** Whether bytes after its end are an error. */
  readonly isStrict?: boolean;
  /** Shared with other streams; default: its own. */
  readonly work?: UnpackWork;
}

/** What several streams may cost together, so that many small bombs are no large one. */
export interface UnpackWork {
  /** Bytes that they may still unpack to in addition to {@link MAX_RATIO} times their size. */
  spare: number;
  /** Bytes that zstd has moved and made. */
  moved: number;
  made: number;
}

export function createUnpackWork(spare = 64 * 2 ** 30): UnpackWork {
  return { spare, moved: 0, made: 0 };
}

/** The tar in an archive or layer. */
export function unpacked(
  archive: AsyncIterable<Uint8Array>,
  options: Packed,
  bad: BadArchive,
): AsyncIterable<Uint8Array> {
  const { size, allowed = ALWAYS_ALLOWED, work = createUnpackWork() } = options;
  const usual = size * MAX_RATIO;
  return limited(plain(archive, { ...options, work }, bad), { usual, most: Math.max(allowed, usual), work }, bad);
}

/** The compression of bytes that begin with these, which container runtimes recognize in the same way. */
export function packingOf(start: Uint8Array): 'gzip' | 'zstd' | undefined {
  const magic = Buffer.from(start.subarray(0, 4)).toString('hex');
  if (magic.startsWith('1f8b')) return 'gzip';
  return magic === '28b52ffd' || /^5.2a4d18$/.test(magic) ? 'zstd' : undefined;
}

/** Compressions that no container runtime reads, by the first bytes in hex. */
export const OTHER_PACKINGS: readonly (readonly [string, string])[] = [
  ['425a68', 'bzip2'],
  ['fd377a585a00', 'xz'],
];

type Working = Packed & { readonly work: UnpackWork };

async function* plain(packed: AsyncIterable<Uint8Array>, options: Working, bad: BadArchive): Bytes {
  const chunks = packed[Symbol.asyncIterator]();
  let start = Buffer.alloc(0);
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    start = Buffer.concat([start, next.value]);
    if (start.byteLength >= 4) break;
  }
  const all = prefixed(start, chunks);
  const packing = packingOf(start);
  if (packing === 'gzip') yield* gunzipped(all, options, bad);
  else if (packing === 'zstd') yield* unzstdInTurn(all, options.work, bad);
  else yield* all;
}

async function* gunzipped(
  packed: AsyncIterable<Uint8Array>,
  { size, isStrict = false }: Packed,
  bad: BadArchive,
): Bytes {
  const source = Readable.from(packed, { objectMode: false });
  const gunzip = createGunzip({ chunkSize: READ_SIZE });
  source.once('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  const follows = 'other bytes follow the end of its gzip data';
  try {
    yield* gunzip as AsyncIterable<Buffer>;
    // Node passes over zeros; runtimes refuse them as they refuse any other bytes.
    if (isStrict && gunzip.bytesWritten < size) throw bad(follows);
  } catch (error) {
    if (errnoOf(error)?.startsWith('Z_') !== true) throw error;
    const { message } = asError(error);
    // The first header has the magic: this is what takes the place of a second one.
    throw bad(message === 'incorrect header check' ? follows : `gzip: ${message}`, error);
  } finally {
    gunzip.destroy();
    source.destroy();
  }
}

/** The largest window that the zstd program reads without being asked to. */
const MAX_WINDOW = 128 << 20;
/** A block unpacks to at most 128 KiB, and can have three bytes: so many packed bytes at once unpack to at most 43 MiB. */
const ZSTD_PIECE = 1 << 10;
/** The decompressor moves its whole window for each block, so that many small blocks take long. */
const MAX_MOVED = 64 * 2 ** 30;
const MOVED_PER_BYTE = 1024;

/** So many windows of this thread are in memory at once. */
const WINDOWS = createSemaphore(2);

async function* unzstdInTurn(packed: AsyncIterable<Uint8Array>, work: UnpackWork, bad: BadArchive): Bytes {
  await WINDOWS.acquire();
  try {
    yield* unzstd(packed, work, bad);
  } finally {
    WINDOWS.release();
  }
}

async function* unzstd(packed: AsyncIterable<Uint8Array>, work: UnpackWork, bad: BadArchive): Bytes {
  let blocks: Uint8Array[] = [];
  const stream = new Decompress((block, isLast) => {
    if (isLast === true) return;
    // Before the window is written to: until then its pages do not exist.
    const window = windowOf(stream);
    if (window > MAX_WINDOW) throw bad(`its zstd window of ${window} bytes is larger than ${MAX_WINDOW}`);
    work.moved += window;
    work.made += block.byteLength;
    if (work.moved > MAX_MOVED + work.made * MOVED_PER_BYTE)
      throw bad('its zstd blocks are too small for their window');
    blocks.push(block);
  });
  const push = (piece: Uint8Array, isLast: boolean): readonly Uint8Array[] => {
    try {
      stream.push(piece, isLast);
    } catch (error) {
      if (error instanceof Error && typeof (error as { code?: unknown }).code !== 'number') throw error;
      throw bad(`zstd: ${asError(error).message}`, error);
    }
    const made = blocks;
    blocks = [];
    return made;
  };
  for await (const chunk of packed) {
    for (let at = 0; at < chunk.byteLength; at += ZSTD_PIECE) yield* push(chunk.subarray(at, at + ZSTD_PIECE), false);
  }
  yield* push(new Uint8Array(0), true);
}

/** The size of the window of the frame that is being read; fzstd has it in its state alone. */
function windowOf(stream: Decompress): number {
  const state: unknown = Reflect.get(stream, 's');
  const window: unknown = typeof state === 'object' && state !== null ? Reflect.get(state, 'e') : undefined;
  if (typeof window !== 'number') throw new TypeError('this fzstd does not show its window');
  return window;
}

async function* prefixed(first: Uint8Array, rest: AsyncIterator<Uint8Array>): Bytes {
  try {
    if (first.byteLength > 0) yield first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

interface Bounds {
  /** What needs nothing of `work`. */
  readonly usual: number;
  readonly most: number;
  readonly work: UnpackWork;
}

async function* limited(bytes: AsyncIterable<Uint8Array>, { usual, most, work }: Bounds, bad: BadArchive): Bytes {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.byteLength;
    if (count > most) throw bad(`it unpacks to more than ${most} bytes`);
    const unusual = Math.max(0, Math.min(chunk.byteLength, count - usual));
    work.spare -= unusual;
    if (unusual > 0 && work.spare < 0) throw bad('it and the others before it unpack to far more than they are');
    yield chunk;
  }
}
