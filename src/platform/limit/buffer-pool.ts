/** Memory that goes round: fresh pages for every chunk would cost as much as copying it. */

export interface BufferPool {
  /** Memory for a chunk, of at most so many bytes and of nobody else until it is given back. What never is, is collected. */
  readonly allocate: (length: number) => Uint8Array;
  /** Takes back what was allocated here, whole or a part of it; memory of others is left alone. */
  readonly giveBack: (chunk: Uint8Array) => void;
}

/** `size`: bytes of one buffer, and the most of one chunk. `mostFree`: buffers that are kept for whoever comes next. */
export function createBufferPool({
  size,
  mostFree = Number.POSITIVE_INFINITY,
}: {
  readonly size: number;
  readonly mostFree?: number;
}): BufferPool {
  const own = new WeakSet<ArrayBufferLike>();
  const free: ArrayBufferLike[] = [];
  return {
    allocate: (length) => {
      const memory = free.pop() ?? new ArrayBuffer(size);
      own.add(memory);
      return new Uint8Array(memory, 0, Math.min(length, size));
    },
    giveBack: ({ buffer }) => {
      if (own.delete(buffer) && free.length < mostFree) free.push(buffer);
    },
  };
}
