/** The digest of a whole file. */
import { createHash } from 'node:crypto';
import { openFileSource } from '../archive/read.ts';
import type { Digest } from '../core/digest.ts';

const READ_SIZE = 1 << 20;

/** Reads a file once; `onChunk` may use each chunk until it resolves. */
export async function digestOfFile(
  path: string,
  {
    onChunk,
    signal,
  }: { readonly onChunk?: ((chunk: Uint8Array) => Promise<void> | void) | undefined; readonly signal: AbortSignal },
): Promise<Digest> {
  await using source = await openFileSource(path);
  const hash = createHash('sha256');
  const memory = Buffer.allocUnsafeSlow(READ_SIZE);
  const allocate = (length: number): Uint8Array => memory.subarray(0, length);
  for await (const chunk of source.read(0, source.size, { signal, allocate })) {
    hash.update(chunk);
    await onChunk?.(chunk);
  }
  return `sha256:${hash.digest('hex')}`;
}
