/** Finds the files of a tar archive on disk by reading only its headers. Hostile input. */
import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import { CurlewError } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';

/** The range of a file's bytes in the archive. */
export interface TarPlace {
  readonly offset: number;
  readonly size: number;
}

const BLOCK = 512;
const MAX_ENTRIES = 100_000;
const EXTENSION_LIMIT = 1024 * 1024;
/** Longest chain of links that is followed; docker writes one level. */
const MAX_LINKS = 4;

const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);
const LINKS: ReadonlySet<string> = new Set(['SymbolicLink', 'Link']);
const FOLDERS: ReadonlySet<string> = new Set(['Directory', 'GNUDumpDir']);

/** Properties of the next entry from the extension headers before it. */
interface Extension {
  pax: Pax | undefined;
  path: string | undefined;
  linkpath: string | undefined;
}

interface Found {
  readonly files: Map<string, TarPlace>;
  readonly links: Map<string, string>;
}

/** Exactly `size` bytes at `offset`, or fewer at the end. */
async function readAt(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(buffer, filled, size - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function invalid(from: string, what: string): CurlewError {
  return new CurlewError('IMAGE_INVALID', `${from}: ${what}`);
}

function cleanPath(path: string, from: string): string {
  const clean = path.replace(/^(?:\.\/)+/, '').replace(/(?<!\/)\/+$/, '');
  const problem = clean === '' || clean === '.' ? undefined : pathProblem(clean);
  if (problem !== undefined) throw invalid(from, `the path ${JSON.stringify(path.slice(0, 200))} ${problem}`);
  return clean;
}

/** Reads an extension header; returns false for any other header. */
async function takeExtension(
  file: FileHandle,
  header: Header,
  { offset, size }: TarPlace,
  extension: Extension,
  from: string,
): Promise<boolean> {
  const { type } = header;
  const long = type === 'NextFileHasLongPath' || type === 'NextFileHasLongLinkpath';
  if (!long && type !== 'ExtendedHeader' && type !== 'OldExtendedHeader') return type === 'GlobalExtendedHeader';
  if (size > EXTENSION_LIMIT) throw invalid(from, `a tar extension header of ${size} bytes`);
  const text = (await readAt(file, offset, size)).toString('utf8');
  const [name = ''] = text.split('\u0000', 1);
  if (type === 'NextFileHasLongPath') extension.path = name;
  else if (type === 'NextFileHasLongLinkpath') extension.linkpath = name;
  else extension.pax = Pax.parse(text, extension.pax);
  return true;
}

function takeEntry({ files, links }: Found, header: Header, extension: Extension, place: TarPlace, from: string): void {
  const { path: longPath, linkpath: longTarget, pax } = extension;
  // tar's Header changes path and link of an extended header if the plain header has them, too.
  const path = cleanPath(longPath ?? pax?.path ?? header.path ?? '', from);
  const target = longTarget ?? pax?.linkpath ?? header.linkpath ?? '';
  if (FOLDERS.has(header.type)) return;
  const isLink = LINKS.has(header.type);
  if (!isLink && !FILES.has(header.type)) {
    throw invalid(from, `an entry of type ${header.type}: ${JSON.stringify(path)}`);
  }
  if (files.has(path) || links.has(path)) throw invalid(from, `two entries named ${JSON.stringify(path)}`);
  if (!isLink) files.set(path, place);
  // Used only if the archive's manifest names it; never a path on disk.
  else links.set(path, header.type === 'Link' ? target : posix.join(posix.dirname(path), target));
}

async function walk(file: FileHandle, total: number, from: string, signal: AbortSignal): Promise<Found> {
  const index: Found = { files: new Map(), links: new Map() };
  const fresh = (): Extension => ({ pax: undefined, path: undefined, linkpath: undefined });
  let extension = fresh();
  let offset = 0;
  for (let count = 0; offset + BLOCK <= total; count += 1) {
    signal.throwIfAborted();
    if (count > MAX_ENTRIES) throw invalid(from, `more than ${MAX_ENTRIES} entries`);
    const header = new Header(await readAt(file, offset, BLOCK), 0, extension.pax);
    offset += BLOCK;
    if (header.nullBlock) return index;
    if (!header.cksumValid) throw invalid(from, `not a tar archive, or damaged at byte ${offset - BLOCK}`);
    const size = header.size ?? 0;
    if (!Number.isSafeInteger(size) || size < 0) throw invalid(from, 'an entry with an invalid size');
    const place = { offset, size };
    if (offset + size > total) throw invalid(from, 'it is truncated within an entry');
    if (!(await takeExtension(file, header, place, extension, from))) {
      takeEntry(index, header, extension, place, from);
      extension = fresh();
    }
    offset += size + ((BLOCK - (size % BLOCK)) % BLOCK);
  }
  if (index.files.size === 0) throw invalid(from, 'not a tar archive');
  return index;
}

/**
 * Returns a lookup for the files of a tar archive, which follows links within it. Throws `IMAGE_INVALID` for paths that are
 * absolute or contain `..`, repeated names, devices, and sizes beyond the end.
 */
export async function indexTar(
  file: FileHandle,
  total: number,
  from: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<(path: string) => TarPlace | undefined> {
  const { files, links } = await walk(file, total, from, signal);
  return (path) => {
    let at = path;
    for (let hops = 0; hops < MAX_LINKS; hops += 1) {
      const place = files.get(at);
      if (place !== undefined) return place;
      const next = links.get(at);
      if (next === undefined) return undefined;
      at = next.replace(/^(?:\.\/)+/, '');
    }
    return undefined;
  };
}

/** A whole file of the archive; `IMAGE_INVALID` if it is larger than `limit`. */
export async function readTarEntry(
  file: FileHandle,
  { offset, size }: TarPlace,
  limit: number,
  from: string,
): Promise<Uint8Array> {
  if (size > limit) throw invalid(from, `${size} bytes, more than ${limit}`);
  return readAt(file, offset, size);
}
