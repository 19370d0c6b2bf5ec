/** Writes bytes to standard output. */
import { fstatSync, readSync, statSync, write as writeTo, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';

const DOING = 'write to standard output';
const DESCRIPTOR = 1;

const writeFile = promisify(writeTo);

/**
 * Writes pieces sequentially; a piece is written when its promise resolves. A terminal is `USAGE`. Aborting the signal stops
 * waiting for a reader that does not read.
 */
export function openStandardOutput({ signal }: { readonly signal: AbortSignal }): (piece: Uint8Array) => Promise<void> {
  if (process.stdout.isTTY) {
    throw new CurlewError('USAGE', `cannot ${DOING}: it is a terminal`, {
      hint: 'redirect it to a program or a file, or use -o with a file',
    });
  }
  const stats = fstatSync(DESCRIPTOR);
  if (isClosed(stats)) {
    throw new CurlewError('FILE_UNUSABLE', `cannot ${DOING}: it is closed`, {
      hint: 'redirect it to a program or a file, or use -o with a file',
    });
  }
  // Node writes to pipes and sockets without blocking, but drops bytes if a file's disk is full.
  const write = stats.isFIFO() || stats.isSocket() ? send : put;
  return async (piece) => {
    try {
      await write(piece, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (errnoOf(error) !== 'EPIPE') throw fileError(DOING, error);
      throw new CurlewError('FILE_UNUSABLE', `cannot ${DOING}: the reader closed the pipe before the end`, {
        cause: error,
      });
    }
  };
}

/** Node opens a closed descriptor as /dev/null, for reading and writing; a shell's `>/dev/null` is for writing only. */
function isClosed({ rdev }: Stats): boolean {
  if (rdev === 0 || rdev !== statSync('/dev/null').rdev) return false;
  try {
    readSync(DESCRIPTOR, Buffer.alloc(1));
    return true;
  } catch {
    return false;
  }
}

async function send(piece: Uint8Array, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    process.stdout.write(piece, (error) => {
      signal.removeEventListener('abort', stop);
      if (error) reject(error);
      else resolve();
    });
  });
}

async function put(piece: Uint8Array, signal: AbortSignal): Promise<void> {
  for (let done = 0; done < piece.byteLength;) {
    signal.throwIfAborted();
    done += (await writeFile(DESCRIPTOR, piece, done)).bytesWritten;
  }
}
