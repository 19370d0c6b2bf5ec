/** Where the bytes of a payload are: in an archive, in a separate file, or in memory. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import type { PlacedEntry, RangeSource } from './entry.ts';
import { readPayload } from './read.ts';

export type Holder =
  | { readonly kind: 'entry'; readonly source: RangeSource; readonly entry: PlacedEntry }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'bytes'; readonly path: string; readonly data: Uint8Array };

interface Expected {
  readonly size: number;
  readonly digest: Digest;
}

const READ_SIZE = 1 << 20;

/** The unpacked bytes, checked while streaming: use them only after the stream has ended. */
export async function* readHolder(
  holder: Holder,
  expected: Expected,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array, void, undefined> {
  switch (holder.kind) {
    case 'entry':
      if (holder.entry.digest !== expected.digest || holder.entry.size !== expected.size)
        throw changed(holder.entry.path);
      yield* readPayload(holder.source, holder.entry, { signal });
      return;
    case 'bytes':
      if (holder.data.byteLength !== expected.size || digestOf(holder.data) !== expected.digest)
        throw changed(holder.path);
      yield holder.data;
      return;
    case 'file':
      yield* readPlain(holder.path, expected, { signal });
  }
}

async function* readPlain(
  path: string,
  { size, digest }: Expected,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const hash = createHash('sha256');
    for (let done = 0; ;) {
      signal.throwIfAborted();
      const chunk = Buffer.allocUnsafe(Math.min(READ_SIZE, size - done + 1));
      const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, done);
      done += bytesRead;
      if (done > size) throw changed(path);
      if (bytesRead === 0) break;
      hash.update(chunk.subarray(0, bytesRead));
      yield chunk.subarray(0, bytesRead);
    }
    if (`sha256:${hash.digest('hex')}` !== digest) throw changed(path);
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT') throw changed(path);
    throw fileError(`read ${path}`, error);
  }
}

function changed(path: string): CurlewError {
  return new CurlewError('DIGEST_MISMATCH', `${path}: it has changed since the table of contents was written`, {
    hint: 'another program writes to it: stop that program and run the same command again',
  });
}
