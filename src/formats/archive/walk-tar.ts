/** Walks over a plain tar from outside (hostile), file by file, and reads only the requested payloads. */
import { Header } from 'tar/header';
import { createByteReader, type ByteReader } from './byte-reader.ts';
import { paddingOf } from './header.ts';
import { noExtension, takeExtension } from './tar-extension.ts';

export interface WalkedFile {
  /** Path in the tar, without a leading `./`. It is unchecked and must not be used as a path on disk. */
  readonly path: string;
  readonly size: number;
  /** Reads all bytes. Call it before the next iteration, and only for small files. */
  readonly data: () => Promise<Buffer>;
}

export interface WalkOptions {
  /** Creates the error for a damaged tar, or for a file that is not a tar. */
  readonly refuse: (what: string) => Error;
  readonly signal: AbortSignal;
}

const BLOCK = 512;
const MAX_ENTRIES = 100_000;
const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);

/** The regular files in order. Skips other entries, and payloads that are not read. */
export async function* walkTar(
  stream: AsyncIterable<Uint8Array>,
  { refuse, signal }: WalkOptions,
): AsyncGenerator<WalkedFile, void, undefined> {
  await using reader = createByteReader(stream);
  let extension = noExtension();
  for (let count = 0; ; count += 1) {
    signal.throwIfAborted();
    if (count > MAX_ENTRIES) throw refuse(`more than ${MAX_ENTRIES} entries`);
    const block = await reader.take(BLOCK);
    if (block.byteLength === 0 && count > 0) return;
    if (block.byteLength < BLOCK) throw refuse('it is truncated');
    const header = new Header(block, 0, extension.pax);
    if (header.nullBlock) return;
    if (!header.cksumValid) throw refuse('it is damaged');
    const size = header.size ?? 0;
    if (!Number.isSafeInteger(size) || size < 0) throw refuse('an entry with an invalid size');
    if (await takeExtension(reader, header, size, extension, refuse)) continue;
    const path = (extension.path ?? extension.pax?.path ?? header.path ?? '').replace(/^(?:\.\/)+/, '');
    extension = noExtension();
    let remaining = size;
    const data = async (): Promise<Buffer> => {
      const bytes = await reader.take(remaining);
      remaining -= bytes.byteLength;
      return bytes;
    };
    if (FILES.has(header.type)) yield { path, size, data };
    await skip(reader, remaining + paddingOf(size), refuse);
  }
}

async function skip(reader: ByteReader, count: number, refuse: WalkOptions['refuse']): Promise<void> {
  for (let remaining = count; remaining > 0;) {
    const part = await reader.some(remaining);
    if (part.byteLength === 0) throw refuse('it is truncated');
    remaining -= part.byteLength;
  }
}
