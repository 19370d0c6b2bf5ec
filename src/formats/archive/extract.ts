/**
 * The one extractor. Reading the index has checked names and links; extraction verifies every byte as it is written, creates
 * files exclusively, and limits their size and number.
 */
import { constants } from 'node:fs';
import { chmod, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, errorAbout, fileError } from '../../core/errors.ts';
import { safePath } from '../../core/layout.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from './entry.ts';
import { isBomb, MAX_RATIO } from './pack.ts';
import { readPayload } from './read.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

export interface ExtractLimits {
  /** Sum of unpacked bytes. */
  readonly bytes: number;
  readonly files: number;
  /** Limit of unpacked to packed bytes, for files from 1 MiB: far above the ratio of real files. */
  readonly ratio: number;
}

const EXTRACT_LIMITS: ExtractLimits = { bytes: 2 ** 40, files: 1_000_000, ratio: MAX_RATIO };

/** The unpacked bytes of an entry's payload, checked while streaming: an error follows the last good chunk. */
export type ReadEntry = (entry: PlacedEntry, options: { readonly signal: AbortSignal }) => AsyncIterable<Uint8Array>;

export interface ExtractOptions {
  /** Folder to extract into; created if it is missing. Nothing is written outside it. */
  readonly into: string;
  /** Path in `into` for an entry, or undefined to skip it. Default: the entry's own path. */
  readonly select?: (entry: PlacedEntry) => string | undefined;
  readonly limits?: ExtractLimits;
  /** Reads the verified, unpacked bytes of a payload; default: from the archive itself. */
  readonly read?: ReadEntry | undefined;
  /** Flush every file and folder to disk before returning. */
  readonly sync?: boolean;
  readonly signal: AbortSignal;
}

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Writes the selected entries as independent files (a hard link becomes a separate file). Returns the number of bytes and
 * files. Throws on damage; files that were already written stay for the caller to remove.
 */
export async function extractEntries(
  source: RangeSource,
  index: ArchiveIndex,
  {
    into,
    select,
    limits = EXTRACT_LIMITS,
    read = (entry, options) => readPayload(source, entry, options),
    sync = false,
    signal,
  }: ExtractOptions,
): Promise<{ readonly bytes: number; readonly files: number }> {
  const selected = selectEntries(source.name, index, select, limits);
  const folders = new Set<string>();
  let bytes = 0;
  for (const { entry, payload, target } of selected) {
    signal.throwIfAborted();
    const path = join(into, target);
    try {
      await makeFolders(dirname(path), folders);
      await using file = await open(path, FLAGS, entry.mode);
      await writePayload(read(payload, { signal }), file);
      // The umask applied when the file was created.
      await file.chmod(entry.mode);
      if (sync) await file.sync();
    } catch (error) {
      if (error instanceof CurlewError || signal.aborted) throw error;
      if (errnoOf(error) === 'EEXIST')
        throw new CurlewError('FILE_EXISTS', `cannot extract ${path}: it already exists`);
      throw fileError(`extract ${path}`, error);
    }
    bytes += entry.size;
  }
  if (sync) for (const folder of folders.add(into)) await syncFolder(folder);
  return { bytes, files: selected.length };
}

interface Selected {
  readonly entry: PlacedEntry;
  /** The entry with the bytes: the linked file for a hard link. */
  readonly payload: PlacedEntry;
  readonly target: string;
}

/** `PACKAGE_INVALID` for an archive that {@link extractEntries} would refuse. Reads only the index. */
export function requireExtractable(name: string, index: ArchiveIndex): void {
  selectEntries(name, index, undefined, EXTRACT_LIMITS);
}

/** Checks the limits by the index alone, before anything is written. */
function selectEntries(
  name: string,
  { entries }: ArchiveIndex,
  select: ExtractOptions['select'],
  limits: ExtractLimits,
): readonly Selected[] {
  const tooMuch = errorAbout('PACKAGE_INVALID', name, 'nothing was written');
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const selected: Selected[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const target = select === undefined ? entry.path : select(entry);
    if (target === undefined) continue;
    const payload = entry.linkTo === undefined ? entry : byPath.get(entry.linkTo);
    if (payload === undefined) throw tooMuch(`${entry.path} links to nothing`);
    bytes += entry.size;
    if (bytes > limits.bytes) throw tooMuch(`it unpacks to more than ${limits.bytes} bytes`);
    if (isBomb(entry.size, payload.packed, limits.ratio)) {
      throw tooMuch(`${entry.path} unpacks to more than ${limits.ratio} times its packed size`);
    }
    selected.push({ entry, payload, target: safePath(target, name) });
    if (selected.length > limits.files) throw tooMuch(`it contains more than ${limits.files} files`);
  }
  return selected;
}

/** Creates a folder and its parents once, with mode 0755 regardless of the umask. */
async function makeFolders(folder: string, made: Set<string>): Promise<void> {
  if (made.has(folder)) return;
  // Undefined if no folder was created: then there is no mode to set.
  const shortest = (await makeMissing(folder))?.length ?? Infinity;
  for (let path = folder; path.length >= shortest; path = dirname(path)) {
    await chmod(path, 0o755);
    made.add(path);
  }
  made.add(folder);
}

async function writePayload(chunks: AsyncIterable<Uint8Array>, file: FileHandle): Promise<void> {
  // Blocks arrive in chunks of 64 KiB: batching reduces the calls for a large file to a sixteenth.
  let batch: Uint8Array[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    for (let buffers = batch, remaining = size; remaining > 0;) {
      const { bytesWritten } = await file.writev(buffers);
      remaining -= bytesWritten;
      if (remaining > 0) buffers = [Buffer.concat(buffers).subarray(bytesWritten)];
    }
    batch = [];
    size = 0;
  };
  for await (const chunk of chunks) {
    batch.push(chunk);
    size += chunk.byteLength;
    if (size >= 1 << 20) await flush();
  }
  await flush();
}
