/** Finds the files of a tar archive on disk by reading only its headers. Hostile input. */
import type { FileHandle } from 'node:fs/promises';
import { posix } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';
import { createFileReader } from '../archive/byte-reader.ts';
import { TAR_BLOCK } from '../archive/header.ts';
import { isFileEntry, isFolderEntry, plainPath, walkEntries } from '../archive/walk-tar.ts';

/** The range of a file's bytes in the archive. */
export interface TarPlace {
  readonly offset: number;
  readonly size: number;
}

/** Longest chain of links that is followed; docker writes one level. */
const MAX_LINKS = 4;

const LINKS: ReadonlySet<string> = new Set(['SymbolicLink', 'Link']);

function invalid(from: string, what: string): CurlewError {
  return new CurlewError('IMAGE_INVALID', `${from}: ${what}`);
}

/**
 * Returns a lookup for the files of a tar archive of `total` bytes, which follows links within it. Throws `IMAGE_INVALID` for
 * paths that are absolute or contain `..`, repeated names, devices, and sizes beyond the end.
 */
export async function indexTar(
  file: FileHandle,
  total: number,
  from: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<(path: string) => TarPlace | undefined> {
  const refuse = (what: string): CurlewError => invalid(from, what);
  if (total < TAR_BLOCK) throw refuse('not a tar archive');
  const files = new Map<string, TarPlace>();
  /** Used only if the archive's manifest names them; never a path on disk. */
  const links = new Map<string, string>();
  const damaged = (at: number): string => `not a tar archive, or damaged at byte ${at}`;
  for await (const entry of walkEntries(createFileReader(file, total), { refuse, damaged, signal })) {
    const { type, path, linkpath, offset, size } = entry;
    const shown = JSON.stringify(path.slice(0, 200));
    const problem = path === '' || path === '.' ? undefined : pathProblem(path);
    if (problem !== undefined) throw refuse(`the path ${shown} ${problem}`);
    if (isFolderEntry(entry)) continue;
    const isLink = LINKS.has(type);
    if (!isLink && !isFileEntry(entry)) throw refuse(`an entry of type ${type}: ${shown}`);
    if (files.has(path) || links.has(path)) throw refuse(`two entries named ${shown}`);
    if (!isLink) files.set(path, { offset, size });
    else links.set(path, type === 'Link' ? linkpath : posix.join(posix.dirname(path), linkpath));
  }
  return (path) => {
    let at = path;
    for (let hops = 0; hops < MAX_LINKS; hops += 1) {
      const place = files.get(at);
      if (place !== undefined) return place;
      const next = links.get(at);
      if (next === undefined) return undefined;
      at = plainPath(next);
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
  const reader = createFileReader(file, offset + size);
  await reader.skip(offset);
  return reader.take(size);
}
