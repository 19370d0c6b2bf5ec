/** Reads a planned bundle in concurrent pieces, for sources with high latency. */
import type { SplicePlan } from '../../../formats/archive/splice.ts';
import { bundleRange, type BundleSource } from './bytes.ts';
import { BUFFER_SIZE } from './write-queue.ts';

/** Five pieces of 2 MiB fill a connection with high latency, and limit the memory for pieces that wait. */
const PIECE = 2 * BUFFER_SIZE;
const CONCURRENCY = 5;

interface ReadAheadOptions {
  readonly signal: AbortSignal;
  /** Provides memory for chunks. A chunk is not reused until it is given back. */
  readonly allocate: (length: number) => Uint8Array;
  /** The first byte; default 0. */
  readonly offset?: number;
  /** Number of bytes; default up to the end. */
  readonly length?: number;
}

/** The bytes of a range of the plan, like {@link bundleRange}. All reads have ended when it returns. */
export async function* readAhead(
  splice: SplicePlan,
  sources: readonly BundleSource[],
  { offset = 0, length = splice.size - offset, signal, allocate }: ReadAheadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const stopped = new AbortController();
  const either = AbortSignal.any([signal, stopped.signal]);
  const pieces: Promise<readonly Uint8Array[]>[] = [];
  const end = offset + length;
  let next = offset;
  const fill = (): void => {
    while (pieces.length < CONCURRENCY && next < end) {
      const count = Math.min(PIECE, end - next);
      const range = { offset: next, length: count };
      const piece = gather((room) => bundleRange(splice, sources, { ...range, signal: either, allocate: room }), {
        length: count,
        allocate,
      });
      // Thrown when the piece is awaited.
      piece.catch(() => undefined);
      pieces.push(piece);
      next += count;
    }
  };
  try {
    for (;;) {
      fill();
      const piece = pieces.shift();
      if (piece === undefined) return;
      yield* await piece;
    }
  } finally {
    stopped.abort();
    await Promise.allSettled(pieces);
  }
}

/** Combines small chunks to large ones. A source that supports it reads directly to their memory. */
async function gather(
  read: (room: (length: number) => Uint8Array) => AsyncIterable<Uint8Array>,
  { length, allocate }: Pick<ReadAheadOptions, 'allocate'> & { readonly length: number },
): Promise<readonly Uint8Array[]> {
  const gathered: Uint8Array[] = [];
  let last: Uint8Array = new Uint8Array(0);
  let filled = 0;
  let done = 0;
  const room = (count: number): Uint8Array => {
    if (filled === last.byteLength) {
      last = allocate(Math.min(BUFFER_SIZE, length - done));
      gathered.push(last);
      filled = 0;
    }
    return last.subarray(filled, filled + count);
  };
  for await (const chunk of read(room)) {
    for (let at = 0; at < chunk.byteLength;) {
      const some = chunk.subarray(at, at + room(chunk.byteLength - at).byteLength);
      if (some.buffer !== last.buffer || some.byteOffset !== last.byteOffset + filled) last.set(some, filled);
      filled += some.byteLength;
      done += some.byteLength;
      at += some.byteLength;
    }
  }
  return gathered;
}
