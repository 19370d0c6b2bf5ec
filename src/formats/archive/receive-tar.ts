/**
 * Receives a plain tar from another program (hostile) and writes its files into a folder: one tree of regular files, with no
 * path that leads outside, within limits. Refuses entries before it writes them.
 */
import { createHash } from 'node:crypto';
import { copyFile, constants, mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Header } from 'tar/header';
import { errnoOf } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';
import type { PackageFile } from '../../core/package.ts';
import { compareText } from '../../core/ref.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { createByteReader, type ByteReader } from './byte-reader.ts';
import { paddingOf } from './header.ts';
import { noExtension, takeExtension, type Extension } from './tar-extension.ts';

export interface ReceiveOptions {
  /** The top folder of the tar, with which every path begins. The written paths do not include it. */
  readonly top: string;
  /** An empty folder that no other process writes to. */
  readonly into: string;
  /** Sums over all files; hard links count as the files that they become. */
  readonly limits: {
    readonly bytes: number;
    readonly files: number;
    /** What more bytes say of the tar; default: their number. */
    readonly over?: string;
  };
  /** Creates the error for an entry that is refused. */
  readonly refuse: (what: string, hint?: string) => Error;
  readonly signal: AbortSignal;
}

const BLOCK = 512;
/** Folders and extension headers are not files, but also cost time and space. */
const ENTRIES_A_FILE = 10;
const MIN_ENTRIES = 1000;

const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);
const FOLDERS: ReadonlySet<string> = new Set(['Directory', 'GNUDumpDir']);

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
  let extension = noExtension();
  for (let count = 0; ; count += 1) {
    signal.throwIfAborted();
    if (count > most) throw refuse(`more than ${most} entries`);
    const block = await reader.take(BLOCK);
    if (block.byteLength < BLOCK) throw refuse('it is truncated');
    const header = new Header(block, 0, extension.pax);
    if (header.nullBlock) break;
    if (!header.cksumValid) throw refuse('it is damaged');
    const size = header.size ?? 0;
    if (!Number.isSafeInteger(size) || size < 0) throw refuse('an entry with an invalid size');
    if (await takeExtension(reader, header, size, extension, refuse)) continue;
    await takeEntry(reader, header, { extension, size, files, taken }, options);
    extension = noExtension();
  }
  return [...files.values()].toSorted((a, b) => compareText(a.path, b.path));
}

interface Entry {
  readonly extension: Extension;
  readonly size: number;
  readonly files: Map<string, PackageFile>;
  readonly taken: { bytes: number };
}

async function takeEntry(
  reader: ByteReader,
  header: Header,
  { extension, size, files, taken }: Entry,
  options: ReceiveOptions,
): Promise<void> {
  const { refuse, into, limits } = options;
  const { type } = header;
  // tar's Header changes path and link of an extended header if the plain header has them, too.
  const path = innerPath(extension.path ?? extension.pax?.path ?? header.path ?? '', options);
  const shown = JSON.stringify(path.slice(0, 200));
  const linkpath = extension.linkpath ?? extension.pax?.linkpath ?? header.linkpath ?? '';
  if (FOLDERS.has(type)) return;
  if (path === '') throw refuse(`${options.top} is not a folder but ${describe(type, linkpath)}`);
  const isLink = type === 'Link';
  if (!isLink && !FILES.has(type)) {
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
  const mode = linked?.mode ?? (((header.mode ?? 0) & 0o111) === 0 ? 0o644 : 0o755);
  const target = join(into, path);
  try {
    await mkdir(dirname(target), { recursive: true });
    if (linked === undefined) {
      await using file = await open(target, 'wx', mode);
      files.set(path, { path, mode, size, digest: await writeEntry(reader, size, file, options) });
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
  const clean = path.replace(/^(?:\.\/)+/, '').replace(/(?<!\/)\/+$/, '');
  const problem = pathProblem(clean);
  if (problem !== undefined) throw refuse(`the path ${JSON.stringify(path.slice(0, 200))} ${problem}`);
  if (clean === top) return '';
  if (!clean.startsWith(`${top}/`)) throw refuse(`${JSON.stringify(path.slice(0, 200))} is outside ${top}`);
  return clean.slice(top.length + 1);
}

async function writeEntry(
  reader: ByteReader,
  size: number,
  file: FileHandle,
  { refuse, signal }: ReceiveOptions,
): Promise<PackageFile['digest']> {
  const hash = createHash('sha256');
  for (let remaining = size; remaining > 0;) {
    signal.throwIfAborted();
    const chunk = await reader.some(remaining);
    if (chunk.byteLength === 0) throw refuse('it is truncated');
    hash.update(chunk);
    await writeFully(file, chunk, size - remaining);
    remaining -= chunk.byteLength;
  }
  await reader.take(paddingOf(size));
  return `sha256:${hash.digest('hex')}`;
}
