/** One write call may write fewer bytes than requested. */
import type { FileHandle } from 'node:fs/promises';

/** Writes all bytes of a chunk at a position of a file. */
export async function writeFully(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.byteLength;) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}
