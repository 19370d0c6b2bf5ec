/** Memory for parts in flight, which all uploads of a store share. */
import { createBufferPool } from '../platform/limit/buffer-pool.ts';
import { createSemaphore } from '../platform/limit/semaphore.ts';

export interface PartMemory {
  /** Bytes of one buffer. */
  readonly size: number;
  /** Waits for a buffer of at least so many bytes. */
  readonly take: (bytes: number, options: { readonly signal: AbortSignal }) => Promise<Uint8Array>;
  readonly give: (buffer: Uint8Array) => void;
}

/** As many bytes as `count` buffers have, or one part where that is larger, are in use at most. */
export function createPartMemory({ size, count }: { readonly size: number; readonly count: number }): PartMemory {
  const pool = createBufferPool({ size });
  const bytes = createSemaphore(size * count);
  return {
    size,
    take: async (least, { signal }) => {
      await bytes.acquire({ weight: Math.max(least, size), signal });
      return least <= size ? pool.allocate(size) : Buffer.allocUnsafeSlow(least);
    },
    give: (buffer) => {
      pool.giveBack(buffer);
      bytes.release(buffer.byteLength);
    },
  };
}
