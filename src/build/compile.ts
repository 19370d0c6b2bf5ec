/**
 * The content of a package, in order, with size, digest and packing of each payload: everything that a layout requires,
 * before the first layer is fetched.
 */
import type { FramePool } from '../formats/archive/frame-pool.ts';
import {
  isBomb,
  isStoredByName,
  isStoredBySample,
  packBytes,
  storedPacking,
  type Packing,
} from '../formats/archive/pack.ts';
import type { SizedEntry } from '../formats/archive/place.ts';
import { digestOf } from '../core/digest.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { ADDON_JSON, MANIFEST, MANIFEST_LOCK, INSTALL_SH, prefixOf } from '../core/layout.ts';
import { formatAddonJson, packageDigest, type AddonJson, type FileMode, type PackageFile } from '../core/package.ts';
import { compareText, type AddonRef } from '../core/ref.ts';
import { constants, open } from 'node:fs/promises';
import type { SendBlob } from '../formats/oci/image.ts';

/** Source of a file's bytes. */
type Content =
  | { readonly kind: 'bytes'; readonly data: Uint8Array }
  | { readonly kind: 'path'; readonly path: string }
  /** A blob of an image, written directly to its place; `of` is the image's reference, for messages. */
  | BlobContent;

/** A file of the package; `path` is relative to its prefix. */
export interface ContentFile extends PackageFile {
  readonly content: Content;
}

/** How the payload is written. */
type Payload =
  | { readonly kind: 'member'; readonly member: Uint8Array }
  | { readonly kind: 'member-file'; readonly path: string }
  | { readonly kind: 'stored-file'; readonly path: string }
  | BlobContent;

/** A layer: its image, how it comes, and what to do if its bytes are wrong. */
interface BlobContent {
  readonly kind: 'blob';
  readonly of: string;
  readonly send: SendBlob;
  readonly ifAltered: string;
}

export interface CompiledEntry {
  readonly entry: SizedEntry;
  readonly payload: Payload;
}

/** Files up to this size are packed in memory. */
const IN_MEMORY = 1 << 20;
const SAMPLE = 64 << 10;

/** Order of a package: `addon.json`, `Manifest`, the lock, `install.sh`, own files, assets, OS folders, images. */
function compareFiles(os: readonly string[]): (a: string, b: string) => number {
  const first = [ADDON_JSON, MANIFEST, MANIFEST_LOCK, INSTALL_SH];
  const rank = (path: string): number => {
    const named = first.indexOf(path);
    if (named !== -1) return named;
    const [folder = ''] = path.split('/', 1);
    if (folder === 'assets') return first.length + 1;
    if (os.includes(folder)) return first.length + 2;
    if (folder === 'images') return first.length + 3;
    return first.length;
  };
  return (a, b) => rank(a) - rank(b) || compareText(a, b);
}

/** A file whose bytes are in memory. */
export function bytesFile(path: string, data: Uint8Array | string, mode: FileMode = 0o644): ContentFile {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  return { path, mode, size: bytes.byteLength, digest: digestOf(bytes), content: { kind: 'bytes', data: bytes } };
}

export interface CompileOptions {
  readonly pool: FramePool;
  /** Folder for deflated payloads until they are written. */
  readonly scratch: string;
  readonly signal: AbortSignal;
}

/** Adds `addon.json`, sorts the files, and packs payloads that are not stored. */
export async function compile(
  ref: AddonRef,
  about: Omit<AddonJson, 'digest'>,
  files: readonly ContentFile[],
  { pool, scratch, signal }: CompileOptions,
): Promise<{ readonly addon: AddonJson; readonly entries: readonly CompiledEntry[] }> {
  const addon: AddonJson = { ...about, digest: packageDigest(files) };
  const order = compareFiles(addon.os);
  const all = [...files, bytesFile(ADDON_JSON, formatAddonJson(addon))].toSorted((a, b) => order(a.path, b.path));
  const prefix = prefixOf(ref);
  const entries: CompiledEntry[] = [];
  for (const [index, file] of all.entries()) {
    signal.throwIfAborted();
    const { packing, payload } = await packFile(file, { pool, path: `${scratch}/${index}.member` });
    const { mode, size, digest } = file;
    entries.push({ entry: { path: prefix + file.path, mode, size, digest, ...packing }, payload });
  }
  return { addon, entries };
}

async function packFile(
  { path, size, digest, content }: ContentFile,
  scratch: { readonly pool: FramePool; readonly path: string },
): Promise<{ readonly packing: Packing; readonly payload: Payload }> {
  if (content.kind === 'blob') return { packing: storedPacking(size), payload: content };
  if (content.kind === 'bytes' || size <= IN_MEMORY) {
    const data = content.kind === 'bytes' ? content.data : await readStart(content.path, size);
    if (digestOf(data) !== digest) throw fileChanged(path);
    const { member, packing } = packBytes(path, data);
    return { packing, payload: { kind: 'member', member } };
  }
  if (isStoredByName(path) || isStoredBySample(await readStart(content.path, SAMPLE))) {
    return { packing: storedPacking(size), payload: { kind: 'stored-file', path: content.path } };
  }
  const deflated = await scratch.pool.deflate(content.path, scratch.path);
  if (deflated.digest !== digest) throw fileChanged(path);
  const { packed, packedDigest } = deflated;
  if (isBomb(size, packed)) {
    return { packing: storedPacking(size), payload: { kind: 'stored-file', path: content.path } };
  }
  return { packing: { packed, stored: false, packedDigest }, payload: { kind: 'member-file', path: scratch.path } };
}

/** The error for a file that has changed since it was measured. */
export function fileChanged(path: string): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `${path} changed while it was being packed`, {
    hint: 'stop the program that writes to the folder, then run the same command again',
  });
}

/** The first bytes of a file. If it has become shorter than `length`, that is detected later. */
async function readStart(path: string, length: number): Promise<Uint8Array> {
  try {
    // It was a file when it was measured, but may have become a pipe, which would block.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) throw fileChanged(path);
    const bytes = Buffer.alloc(Math.min(length, stats.size));
    const { bytesRead } = await file.read(bytes, 0, bytes.byteLength, 0);
    return bytes.subarray(0, bytesRead);
  } catch (error) {
    throw fileError(`read ${path}`, error);
  }
}
