/** Memory that goes round: fresh pages for every chunk would cost as much as copying it. */

export interface Buffers {
  /** Memory for a chunk, of nobody else until it is given back; what is never given back is lost to the others only. */
  readonly allocate: (length: number) => Uint8Array;
  /** Takes back what was allocated here, whole or a part of it; anything else is let be. */
  readonly giveBack: (chunk: Uint8Array) => void;
}

/** Bytes of one buffer: chunks of more get memory of their own. */
export const BUFFER_SIZE: number = 1 << 20;

export function createBuffers(): Buffers {
  const own = new Set<ArrayBufferLike>();
  const free: ArrayBufferLike[] = [];
  return {
    allocate: (length) => {
      if (length > BUFFER_SIZE) return Buffer.allocUnsafeSlow(length);
      const memory = free.pop() ?? new ArrayBuffer(BUFFER_SIZE);
      own.add(memory);
      return new Uint8Array(memory, 0, length);
    },
    giveBack: ({ buffer }) => {
      if (own.delete(buffer)) free.push(buffer);
    },
  };
}
