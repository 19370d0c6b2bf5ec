/** tar headers of format 1: ustar with prefix split, with a pax record only if ustar cannot represent the entry. */
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import type { ArchiveEntry } from './entry.ts';

export const TAR_BLOCK = 512;
const EPOCH = new Date(0);

/**
 * The header blocks of an entry. uid and gid 0, no names, mtime 0: they depend only on path, mode, size and link.
 */
export function tarHeader(entry: Pick<ArchiveEntry, 'path' | 'mode' | 'size' | 'linkTo'>): Uint8Array {
  const { path, mode, size, linkTo } = entry;
  return linkTo === undefined
    ? anyHeader({ type: 'File', path, mode, size })
    : anyHeader({ type: 'Link', path, mode, linkpath: linkTo });
}

/** Limits below which every ustar header can represent a name, and a size in its eleven octal digits. */
const PLAIN_NAME = 100;
const PLAIN_SIZE = 8 ** 11;

/** True for most entries whose header is a single block; any other may need a pax record before it. */
export function isPlainHeader({ path, size, linkTo = '' }: Pick<ArchiveEntry, 'path' | 'size' | 'linkTo'>): boolean {
  const isShort = path.length < PLAIN_NAME && linkTo.length < PLAIN_NAME;
  return isShort && size < PLAIN_SIZE && /^[\x20-\x7e]*$/.test(path + linkTo);
}

/** Entries of a tar that is not a package, which may also contain folders and links. */
export type TarEntry =
  | { readonly type: 'File'; readonly path: string; readonly mode: number; readonly size: number }
  | { readonly type: 'Directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'Link' | 'SymbolicLink'; readonly path: string; readonly mode: number; readonly linkpath: string };

/** The header blocks of any entry, with the same rules. */
export function anyHeader(entry: TarEntry): Uint8Array {
  const header = new Header({
    path: entry.path,
    mode: entry.mode,
    uid: 0,
    gid: 0,
    size: entry.type === 'File' ? entry.size : 0,
    mtime: EPOCH,
    type: entry.type,
    linkpath: 'linkpath' in entry ? entry.linkpath : '',
    uname: '',
    gname: '',
    devmaj: 0,
    devmin: 0,
  });
  const block = Buffer.alloc(TAR_BLOCK);
  if (!header.encode(block, 0)) return block;
  const pax = new Pax({
    path: entry.path,
    ...(entry.type === 'File' ? { size: entry.size } : {}),
    ...('linkpath' in entry ? { linkpath: entry.linkpath } : {}),
  });
  return Buffer.concat([pax.encode(), block]);
}

/** Number of zero bytes that pad a payload to a whole tar block. */
export function paddingOf(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/** Size of the two zero blocks that end a tar. */
export const TAR_END: number = 2 * TAR_BLOCK;

/** True if these first bytes can begin a tar: a header with its checksum, the zeros of an empty one, or nothing at all. */
export function beginsTar(start: Uint8Array): boolean {
  if (start.byteLength === 0) return true;
  if (start.byteLength < TAR_BLOCK) return false;
  const header = new Header(Buffer.from(start), 0);
  return header.nullBlock || header.cksumValid;
}
