/** Writes a stream to a file, from its beginning, several pieces at once, while the next are read. */
import type { FileHandle } from 'node:fs/promises';

export interface WriteQueue {
  /** Takes a chunk, which must not change afterwards; resolves when there is room for the next. */
  readonly push: (chunk: Uint8Array) => Promise<void>;
  /** Everything has been written when it resolves. */
  readonly finish: () => Promise<void>;
  /** Nothing is being written any more when it resolves, whether it went well or not. */
  readonly settle: () => Promise<void>;
}

/**
 * Measured with 840 MB on ext4: pieces of 1 MiB, four on their way, take 0.8 times as long as `cat`; pieces of 4 MiB
 * three times as long, since they leave the processor's cache before they are copied.
 */
const AT_ONCE = 4;
/** Chunks smaller than this are written together with their neighbours. */
const SMALL = 256 << 10;

export function createWriteQueue(file: FileHandle): WriteQueue {
  const running: Promise<void>[] = [];
  let small: Uint8Array[] = [];
  let waiting = 0;
  let at = 0;
  const start = async (chunk: Uint8Array): Promise<void> => {
    if (running.length >= AT_ONCE) await running.shift();
    const write = writeAll(file, chunk, at);
    // Told by whoever awaits it: the next push, or finish.
    write.catch(() => undefined);
    running.push(write);
    at += chunk.byteLength;
  };
  const startSmall = async (): Promise<void> => {
    const together = Buffer.concat(small);
    [small, waiting] = [[], 0];
    if (together.byteLength > 0) await start(together);
  };
  return {
    push: async (chunk) => {
      if (chunk.byteLength < SMALL) {
        small.push(chunk);
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

async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.byteLength;) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}
