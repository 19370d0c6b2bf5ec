/** Memory for parts in flight: a fixed number of buffers that all uploads of a store share. */

export interface PartMemory {
  /** Bytes of one buffer. */
  readonly size: number;
  /** Waits for a buffer of at least so many bytes. */
  readonly take: (bytes: number, options: { readonly signal: AbortSignal }) => Promise<Uint8Array>;
  readonly give: (buffer: Uint8Array) => void;
}

/** Larger parts than `size` are made for the purpose; they count all the same. */
export function createPartMemory({ size, count }: { readonly size: number; readonly count: number }): PartMemory {
  const free: Uint8Array[] = [];
  const waiting = new Set<() => void>();
  let left = count;
  /** Resolves when the one who waits may have a buffer, whose giver counts it no more. */
  const turn = async (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        waiting.delete(go);
        reject(signal.reason as Error);
      };
      const go = (): void => {
        waiting.delete(go);
        signal.removeEventListener('abort', stop);
        resolve();
      };
      waiting.add(go);
      signal.addEventListener('abort', stop, { once: true });
    });
  return {
    size,
    take: async (bytes, { signal }) => {
      signal.throwIfAborted();
      if (left === 0) await turn(signal);
      else left -= 1;
      const buffer = bytes <= size ? free.pop() : undefined;
      return buffer ?? Buffer.allocUnsafeSlow(Math.max(bytes, size));
    },
    give: (buffer) => {
      if (buffer.byteLength === size) free.push(buffer);
      const [next] = waiting;
      if (next === undefined) left += 1;
      else next();
    },
  };
}
