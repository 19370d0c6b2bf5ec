/** A plain tar, created while it is sent, for receivers such as a container. */
import type { Bytes } from '../../core/bytes.ts';
import { fileError, CurlewError } from '../../core/errors.ts';
import { anyHeader, paddingOf, TAR_END } from './header.ts';
import { openFileSource } from './read.ts';

/** An entry to send; its parent folders need not be listed. */
export type SentEntry =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly size: number;
      readonly content:
        | { readonly kind: 'bytes'; readonly data: Uint8Array }
        | { readonly kind: 'path'; readonly path: string }
        /** Bytes that are created when the entry is sent. */
        | { readonly kind: 'stream'; readonly open: () => AsyncIterable<Uint8Array> };
    }
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

/** A file whose bytes are in memory. */
export function sentBytes(path: string, text: string | Uint8Array, mode = 0o644): SentEntry {
  const data = Buffer.from(text);
  return { kind: 'file', path, mode, size: data.byteLength, content: { kind: 'bytes', data } };
}

/** The bytes of the tar. `FILE_UNUSABLE` if the size of a file has changed. */
export async function* sendTar(entries: Iterable<SentEntry>, { signal }: { readonly signal: AbortSignal }): Bytes {
  for (const entry of entries) {
    signal.throwIfAborted();
    const { path } = entry;
    if (entry.kind === 'folder') {
      yield anyHeader({ type: 'Directory', path: `${path}/`, mode: entry.mode });
      continue;
    }
    if (entry.kind === 'link') {
      yield anyHeader({ type: 'SymbolicLink', path, mode: 0o777, linkpath: entry.target });
      continue;
    }
    const { mode, size, content } = entry;
    yield anyHeader({ type: 'File', path, mode, size });
    if (content.kind === 'bytes') yield content.data;
    else if (content.kind === 'path') yield* fileBytes(content.path, size, signal);
    else yield* counted(content.open(), path, size);
    yield new Uint8Array(paddingOf(size));
  }
  yield new Uint8Array(TAR_END);
}

async function* fileBytes(path: string, size: number, signal: AbortSignal): Bytes {
  try {
    await using source = await openFileSource(path);
    yield* counted(source.read(0, source.size, { signal }), path, size);
  } catch (error) {
    signal.throwIfAborted();
    throw fileError(`read ${path}`, error);
  }
}

/** Never more than `size` bytes: the rest must remain a valid tar. */
async function* counted(bytes: AsyncIterable<Uint8Array>, path: string, size: number): Bytes {
  let sent = 0;
  for await (const chunk of bytes) {
    sent += chunk.byteLength;
    if (sent > size) break;
    yield chunk;
  }
  if (sent !== size) throw new CurlewError('FILE_UNUSABLE', `${path} changed while it was being read`);
}
