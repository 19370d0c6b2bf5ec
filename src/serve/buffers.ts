/** Memory that goes round between all answers: fresh pages for every chunk would cost as much as copying it. */

export interface Buffers {
  /** Memory for the next chunk, of at most so many bytes. */
  readonly allocate: (length: number) => Uint8Array;
  /** Takes back what a chunk lies in, once it has been sent; memory of others is left alone. */
  readonly giveBack: (chunk: Uint8Array) => void;
}

/** Larger chunks would be no faster, and this many bytes are held twice for every client. */
export const CHUNK: number = 128 << 10;
/** Free buffers that are kept for the next client. */
const MOST_FREE = 32;

export function createBuffers(): Buffers {
  const own = new WeakSet<ArrayBufferLike>();
  const free: ArrayBuffer[] = [];
  return {
    allocate: (length) => {
      const memory = free.pop() ?? new ArrayBuffer(CHUNK);
      own.add(memory);
      return new Uint8Array(memory, 0, Math.min(length, CHUNK));
    },
    giveBack: ({ buffer }) => {
      if (!own.delete(buffer) || free.length >= MOST_FREE) return;
      if (buffer instanceof ArrayBuffer) free.push(buffer);
    },
  };
}
