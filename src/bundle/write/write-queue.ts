/** Writes a stream from its beginning, several pieces at once where they may, while the next are read. */
import { createBufferPool } from '../../platform/limit/buffer-pool.ts';

export interface WriteQueue {
  /** Memory for a chunk that is going to be pushed, used again once that has been written. */
  readonly allocate: (length: number) => Uint8Array;
  /** Takes a chunk, which must not change before it is written; resolves when there is room for the next. */
  readonly push: (chunk: Uint8Array) => Promise<void>;
  /** Everything has been written when it resolves. */
  readonly finish: () => Promise<void>;
  /** Nothing is being written any more when it resolves, whether it went well or not. */
  readonly settle: () => Promise<void>;
}

/** Writes all of a piece; `at` counts the bytes before it. */
export type Write = (piece: Uint8Array, at: number) => Promise<void>;

/** Bytes of one chunk, at most. */
export const BUFFER_SIZE: number = 1 << 20;

/** Chunks smaller than this are written together with their neighbours. */
const SMALL = 256 << 10;

/**
 * Pieces that are written to a file at once. Measured with 840 MB on ext4: pieces of 1 MiB, four on their way, take 0.8
 * times as long as `cat`; pieces of 4 MiB three times as long, since they leave the processor's cache before they are
 * copied.
 */
export const WRITES_AT_ONCE = 4;

/** With `atOnce: 1` a piece begins when the one before it has been written. */
export function createWriteQueue(write: Write, { atOnce }: { readonly atOnce: number }): WriteQueue {
  const running: Promise<void>[] = [];
  const buffers = createBufferPool({ size: BUFFER_SIZE });
  let small: Uint8Array[] = [];
  let waiting = 0;
  let at = 0;
  const start = async (chunk: Uint8Array): Promise<void> => {
    if (running.length >= atOnce) await running.shift();
    const writing = write(chunk, at).finally(() => {
      buffers.giveBack(chunk);
    });
    // Told by whoever awaits it: the next push, or finish.
    writing.catch(() => undefined);
    running.push(writing);
    at += chunk.byteLength;
  };
  const startSmall = async (): Promise<void> => {
    const together = Buffer.concat(small);
    [small, waiting] = [[], 0];
    if (together.byteLength > 0) await start(together);
  };
  return {
    allocate: buffers.allocate,
    push: async (chunk) => {
      if (chunk.byteLength < SMALL) {
        small.push(Uint8Array.from(chunk));
        buffers.giveBack(chunk);
        waiting += chunk.byteLength;
        if (waiting >= SMALL) await startSmall();
        return;
      }
      await startSmall();
      await start(chunk);
    },
    finish: async () => {
      await startSmall();
      await Promise.all(running);
    },
    settle: async () => {
      await Promise.allSettled(running);
    },
  };
}
