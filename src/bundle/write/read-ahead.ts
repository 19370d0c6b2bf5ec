/** A planned bundle read in pieces, several at once, for sources that answer slowly but many at a time. */
import type { SplicePlan } from '../../formats/archive/splice.ts';
import { bundleRange, type BundleSource } from './bytes.ts';
import { BUFFER_SIZE } from './write-queue.ts';

/** Pieces of 2 MiB, five of them: what fills a long line, and leaves room for as much that waits to be collected. */
const PIECE = 2 * BUFFER_SIZE;
const AT_ONCE = 5;

interface ReadAheadOptions {
  readonly signal: AbortSignal;
  /** Memory for chunks; each is nobody else's until it is given back. */
  readonly allocate: (length: number) => Uint8Array;
  /** The first byte; that of the bundle when absent. */
  readonly offset?: number;
  /** Bytes; all to the end when absent. */
  readonly length?: number;
}

/** The bytes of a range of the plan in order, like {@link bundleRange}. Nothing is being read any more when it has ended. */
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
    while (pieces.length < AT_ONCE && next < end) {
      const count = Math.min(PIECE, end - next);
      const range = { offset: next, length: count };
      const piece = gather((room) => bundleRange(splice, sources, { ...range, signal: either, allocate: room }), {
        length: count,
        allocate,
      });
      // Told when its turn comes.
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

/** Small chunks put together into large ones; a source that can reads right into them. */
async function gather(
  read: (room: (length: number) => Uint8Array) => AsyncIterable<Uint8Array>,
  { length, allocate }: Pick<ReadAheadOptions, 'allocate'> & { readonly length: number },
): Promise<readonly Uint8Array[]> {
  const gathered: Uint8Array[] = [];
  let last: Uint8Array = new Uint8Array(0);
  let filled = 0;
  let done = 0;
  const room = (wanted: number): Uint8Array => {
    if (filled === last.byteLength) {
      last = allocate(Math.min(BUFFER_SIZE, length - done));
      gathered.push(last);
      filled = 0;
    }
    return last.subarray(filled, filled + wanted);
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
