/** Walks over a plain tar from outside (hostile), entry by entry, and reads only the requested payloads. */
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import { createByteReader, type ByteReader } from './byte-reader.ts';
import { paddingOf, TAR_BLOCK } from './header.ts';

export interface WalkedEntry {
  readonly type: string;
  /** A plain path in the tar. It is unchecked and must not be used as a path on disk. */
  readonly path: string;
  /** The target of a link, as written. */
  readonly linkpath: string;
  readonly mode: number;
  readonly size: number;
  /** The place of its bytes in the tar. */
  readonly offset: number;
  /** Its bytes. Read them before the next iteration. */
  readonly chunks: () => AsyncIterable<Buffer>;
  /** All its bytes at once, only for small files. */
  readonly data: () => Promise<Buffer>;
}

export interface WalkOptions {
  /** Creates the error for a damaged tar, or for a file that is not a tar. */
  readonly refuse: (what: string) => Error;
  /** Names what is wrong with the header at a byte. */
  readonly damaged?: (at: number) => string;
  /** Limit of entries, with headers that only describe the next one. */
  readonly most?: number;
  /** A tar without the block that ends it is truncated. */
  readonly needsEnd?: boolean;
  readonly signal: AbortSignal;
}

const MAX_ENTRIES = 100_000;
const EXTENSION_LIMIT = 1 << 20;
const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);
const FOLDERS: ReadonlySet<string> = new Set(['Directory', 'GNUDumpDir']);
const EXTENSIONS: ReadonlySet<string> = new Set([
  'NextFileHasLongPath',
  'NextFileHasLongLinkpath',
  'ExtendedHeader',
  'OldExtendedHeader',
  'GlobalExtendedHeader',
]);

export function isFileEntry({ type }: { readonly type: string }): boolean {
  return FILES.has(type);
}

export function isFolderEntry({ type }: { readonly type: string }): boolean {
  return FOLDERS.has(type);
}

/** The path without a leading `./` and slashes at its end. */
export function plainPath(path: string): string {
  return path.replace(/^(?:\.\/)+/, '').replace(/(?<!\/)\/+$/, '');
}

/** All entries in order, whatever their type. Skips payloads that are not read. */
export async function* walkEntries(
  reader: ByteReader,
  { refuse, damaged = () => 'it is damaged', most = MAX_ENTRIES, needsEnd = false, signal }: WalkOptions,
): AsyncGenerator<WalkedEntry, void, undefined> {
  let extension: Extension = {};
  let offset = 0;
  for (let count = 0; ; count += 1) {
    signal.throwIfAborted();
    if (count > most) throw refuse(`more than ${most} entries`);
    const block = await reader.take(TAR_BLOCK);
    if (block.byteLength === 0 && count > 0 && !needsEnd) return;
    if (block.byteLength < TAR_BLOCK) throw refuse('it is truncated');
    const header = new Header(block, 0, extension.pax);
    if (header.nullBlock) return;
    if (!header.cksumValid) throw refuse(damaged(offset));
    const { size = 0, type } = header;
    if (!Number.isSafeInteger(size) || size < 0) throw refuse('an entry with an invalid size');
    offset += TAR_BLOCK;
    let remaining = size;
    const chunks = async function* read(): AsyncGenerator<Buffer, void, undefined> {
      while (remaining > 0) {
        signal.throwIfAborted();
        const chunk = await reader.some(remaining);
        if (chunk.byteLength === 0) throw refuse('it is truncated');
        remaining -= chunk.byteLength;
        yield chunk;
      }
    };
    const data = async (): Promise<Buffer> => {
      const bytes = await reader.take(remaining);
      if (bytes.byteLength < remaining) throw refuse('it is truncated');
      remaining = 0;
      return bytes;
    };
    if (EXTENSIONS.has(type)) {
      if (size > EXTENSION_LIMIT) throw refuse(`an extension header of ${size} bytes`);
      extension = extended(extension, type, (await data()).toString('utf8'));
    } else {
      // tar's Header changes path and link of an extended header if the plain header has them, too.
      const path = extension.path ?? extension.pax?.path ?? header.path ?? '';
      yield {
        type,
        path: plainPath(path),
        linkpath: extension.linkpath ?? extension.pax?.linkpath ?? header.linkpath ?? '',
        mode: header.mode ?? 0,
        size,
        offset,
        chunks,
        data,
      };
      extension = {};
    }
    if (!(await reader.skip(remaining))) throw refuse('it is truncated');
    await reader.skip(paddingOf(size));
    offset += size + paddingOf(size);
  }
}

/** The regular files of a tar in order. */
export async function* walkTar(
  stream: AsyncIterable<Uint8Array>,
  options: WalkOptions,
): AsyncGenerator<WalkedEntry, void, undefined> {
  await using reader = createByteReader(stream);
  for await (const entry of walkEntries(reader, options)) if (isFileEntry(entry)) yield entry;
}

/** Properties of the next entry from the headers before it. */
interface Extension {
  readonly pax?: Pax;
  readonly path?: string;
  readonly linkpath?: string;
}

function extended(extension: Extension, type: string, text: string): Extension {
  const [name = ''] = text.split('\u0000', 1);
  if (type === 'NextFileHasLongPath') return { ...extension, path: name };
  if (type === 'NextFileHasLongLinkpath') return { ...extension, linkpath: name };
  return type === 'GlobalExtendedHeader' ? extension : { ...extension, pax: Pax.parse(text, extension.pax) };
}
