/**
 * Receives a plain tar from another program (hostile) and writes its files into a folder: one tree of regular files, with no
 * path that leads outside, within limits. Refuses entries before it writes them.
 */
import { createHash } from 'node:crypto';
import { copyFile, constants, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';
import type { PackageFile } from '../../core/package.ts';
import { compareText } from '../../core/ref.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { createByteReader } from './byte-reader.ts';
import { isFileEntry, isFolderEntry, plainPath, walkEntries, type WalkedEntry } from './walk-tar.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

export interface ReceiveOptions {
  /** The top folder of the tar, with which every path begins. The written paths do not include it. */
  readonly top: string;
  /** An empty folder that no other process writes to. */
  readonly into: string;
  /** Sums over all files; hard links count as the files that they become. */
  readonly limits: {
    readonly bytes: number;
    readonly files: number;
    /** The problem of a tar with more bytes; default: their number. */
    readonly over?: string;
  };
  /** Creates the error for an entry that is refused. */
  readonly refuse: (what: string, hint?: string) => Error;
  readonly signal: AbortSignal;
}

/** Folders and extension headers are not files, but also cost time and space. */
const ENTRIES_A_FILE = 10;
const MIN_ENTRIES = 1000;

/**
 * The files received, sorted by path. Modes become 0644, or 0755 if any user may execute the file. A hard link to an earlier
 * file becomes a separate file. Refused: paths that are absolute, contain `..` or are outside `top`, symbolic links, devices,
 * pipes, other links, repeated paths, a tar that is damaged or truncated, and more than the limits.
 */
export async function receiveTar(
  stream: AsyncIterable<Uint8Array>,
  options: ReceiveOptions,
): Promise<readonly PackageFile[]> {
  const { refuse, limits, signal } = options;
  await using reader = createByteReader(stream);
  const files = new Map<string, PackageFile>();
  const taken = { bytes: 0 };
  const most = Math.max(MIN_ENTRIES, limits.files * ENTRIES_A_FILE);
  for await (const entry of walkEntries(reader, { refuse, most, needsEnd: true, signal })) {
    await takeEntry(entry, { files, taken }, options);
  }
  return [...files.values()].toSorted((a, b) => compareText(a.path, b.path));
}

interface Received {
  readonly files: Map<string, PackageFile>;
  readonly taken: { bytes: number };
}

async function takeEntry(entry: WalkedEntry, { files, taken }: Received, options: ReceiveOptions): Promise<void> {
  const { refuse, into, limits } = options;
  const { type, linkpath, size } = entry;
  const path = innerPath(entry.path, options);
  const shown = JSON.stringify(path.slice(0, 200));
  if (isFolderEntry(entry)) return;
  if (path === '') throw refuse(`${options.top} is not a folder but ${describe(type, linkpath)}`);
  const isLink = type === 'Link';
  if (!isLink && !isFileEntry(entry)) {
    const hint = type === 'SymbolicLink' ? 'packages contain no links: copy the file itself (cp -L)' : undefined;
    throw refuse(`${shown} is ${describe(type, linkpath)}`, hint);
  }
  const linked = isLink ? files.get(innerPath(linkpath, options)) : undefined;
  if (isLink && linked === undefined)
    throw refuse(`${shown} is a hard link to ${JSON.stringify(linkpath)}, which is not an earlier file`);
  if (files.has(path)) throw refuse(`two files named ${shown}`);
  if (files.size >= limits.files) throw refuse(`more than ${limits.files} files`);
  taken.bytes += linked?.size ?? size;
  if (taken.bytes > limits.bytes) throw refuse(limits.over ?? `more than ${limits.bytes} bytes`);
  const mode = linked?.mode ?? ((entry.mode & 0o111) === 0 ? 0o644 : 0o755);
  const target = join(into, path);
  try {
    await makeMissing(dirname(target));
    if (linked === undefined) {
      await using file = await open(target, 'wx', mode);
      files.set(path, { path, mode, size, digest: await writeEntry(entry, file) });
    } else {
      await copyFile(join(into, linked.path), target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      files.set(path, { ...linked, path });
    }
  } catch (error) {
    const errno = errnoOf(error);
    // Also if the file system treats two names as equal, such as one that ignores case.
    if (errno === 'EEXIST' || errno === 'ENOTDIR' || errno === 'EISDIR') throw refuse(`two entries at ${shown}`);
    throw error;
  }
}

function describe(type: string, linkpath: string): string {
  const target = JSON.stringify(linkpath.slice(0, 200));
  return type === 'SymbolicLink' ? `a symbolic link to ${target}` : `of type ${type}, not a regular file`;
}

/** The path in `top`; empty for `top` itself. */
function innerPath(path: string, { top, refuse }: ReceiveOptions): string {
  const clean = plainPath(path);
  const problem = pathProblem(clean);
  if (problem !== undefined) throw refuse(`the path ${JSON.stringify(path.slice(0, 200))} ${problem}`);
  if (clean === top) return '';
  if (!clean.startsWith(`${top}/`)) throw refuse(`${JSON.stringify(path.slice(0, 200))} is outside ${top}`);
  return clean.slice(top.length + 1);
}

async function writeEntry({ chunks }: WalkedEntry, file: FileHandle): Promise<PackageFile['digest']> {
  const hash = createHash('sha256');
  let position = 0;
  for await (const chunk of chunks()) {
    hash.update(chunk);
    await writeFully(file, chunk, position);
    position += chunk.byteLength;
  }
  return `sha256:${hash.digest('hex')}`;
}
