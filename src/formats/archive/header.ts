/** tar headers of format 1: ustar with prefix split, one pax record only where ustar cannot say it. */
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import type { Entry } from './entry.ts';

export const TAR_BLOCK = 512;
const EPOCH = new Date(0);

/**
 * The header blocks of an entry. uid and gid 0, no names, mtime 0: nothing but path, mode, size and link decides them.
 */
export function tarHeader(entry: Pick<Entry, 'path' | 'mode' | 'size' | 'linkTo'>): Uint8Array {
  const { path, mode, size, linkTo } = entry;
  return linkTo === undefined
    ? anyHeader({ type: 'File', path, mode, size })
    : anyHeader({ type: 'Link', path, mode, linkpath: linkTo });
}

/** Longest name, and largest number of its eleven octal digits, that every ustar header can say. */
const PLAIN_NAME = 100;
const PLAIN_SIZE = 8 ** 11;

/** True for most entries of which the header is a single block; any other may need a pax record before it. */
export function isPlainHeader({ path, size, linkTo = '' }: Pick<Entry, 'path' | 'size' | 'linkTo'>): boolean {
  const isShort = path.length < PLAIN_NAME && linkTo.length < PLAIN_NAME;
  return isShort && size < PLAIN_SIZE && /^[\x20-\x7e]*$/.test(path + linkTo);
}

/** What a tar that is no package may hold beside files. */
export type TarEntry =
  | { readonly type: 'File'; readonly path: string; readonly mode: number; readonly size: number }
  | { readonly type: 'Directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'Link' | 'SymbolicLink'; readonly path: string; readonly mode: number; readonly linkpath: string };

/** The header blocks of any entry, made in the same way. */
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

/** Zero bytes that fill a payload up to a whole tar block. */
export function paddingOf(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/** The two zero blocks that end a tar. */
export const TAR_END: number = 2 * TAR_BLOCK;
