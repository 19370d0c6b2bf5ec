/** tar headers of format 1: ustar with prefix split, one pax record only where ustar cannot say it. */
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import type { Entry } from './entry.ts';

const BLOCK = 512;
const EPOCH = new Date(0);

/**
 * The header blocks of an entry. uid and gid 0, no names, mtime 0: nothing but path, mode, size and link decides them.
 */
export function tarHeader(entry: Pick<Entry, 'path' | 'mode' | 'size' | 'linkTo'>): Uint8Array {
  const header = new Header({
    path: entry.path,
    mode: entry.mode,
    uid: 0,
    gid: 0,
    size: entry.linkTo === undefined ? entry.size : 0,
    mtime: EPOCH,
    type: entry.linkTo === undefined ? 'File' : 'Link',
    linkpath: entry.linkTo ?? '',
    uname: '',
    gname: '',
    devmaj: 0,
    devmin: 0,
  });
  const block = Buffer.alloc(BLOCK);
  if (!header.encode(block, 0)) return block;
  const pax = new Pax({
    path: entry.path,
    ...(entry.linkTo === undefined ? { size: entry.size } : { linkpath: entry.linkTo }),
  });
  return Buffer.concat([pax.encode(), block]);
}

/** Zero bytes that fill a payload up to a whole tar block. */
export function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** The two zero blocks that end a tar. */
export const TAR_END: number = 2 * BLOCK;
