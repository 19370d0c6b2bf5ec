/** Memory for parts in flight, shared by all uploads of a store. */
import { createBufferPool } from '../../platform/limit/buffer-pool.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';

export interface PartMemory {
  /** Size of one buffer in bytes. */
  readonly size: number;
  /** Waits for a buffer of at least this many bytes. */
  readonly take: (bytes: number, options: { readonly signal: AbortSignal }) => Promise<Uint8Array>;
  readonly give: (buffer: Uint8Array) => void;
}

/** Limits memory to `count` buffers of `size` bytes, or to one part if that is larger. */
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
