/** Reuses memory: allocating fresh pages for every chunk would cost as much as copying it. */

export interface BufferPool {
  /** Exclusive memory for a chunk of at most `length` bytes, until it is given back. Otherwise it is garbage collected. */
  readonly allocate: (length: number) => Uint8Array;
  /** Takes back memory that this pool allocated, given by any view of it; ignores other memory. */
  readonly giveBack: (chunk: Uint8Array) => void;
}

/** `size`: bytes of one buffer, and the limit of one chunk. `maxFree`: the number of free buffers that are kept. */
export function createBufferPool({
  size,
  maxFree = Number.POSITIVE_INFINITY,
}: {
  readonly size: number;
  readonly maxFree?: number;
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
      if (own.delete(buffer) && free.length < maxFree) free.push(buffer);
    },
  };
}
