/**
 * The one extractor. Names and links were checked when the index was read; here every byte is verified while it is
 * written, files are created exclusively, and what it may fill is limited.
 */
import { constants } from 'node:fs';
import { chmod, mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { safePath } from '../../core/layout.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from './entry.ts';
import { isBomb, MOST_RATIO } from './pack.ts';
import { readPayload } from './read.ts';

export interface ExtractLimits {
  /** Sum of unpacked bytes. */
  readonly bytes: number;
  readonly files: number;
  /** Unpacked to packed bytes, judged from 1 MiB on: far above what real files reach. */
  readonly ratio: number;
}

const EXTRACT_LIMITS: ExtractLimits = { bytes: 2 ** 40, files: 1_000_000, ratio: MOST_RATIO };

/** The unpacked bytes of an entry's payload, checked as they pass: an error comes after the last good chunk. */
export type ReadEntry = (entry: PlacedEntry, options: { readonly signal: AbortSignal }) => AsyncIterable<Uint8Array>;

export interface ExtractOptions {
  /** Folder to extract into; made if it is missing. Nothing is written outside of it. */
  readonly into: string;
  /** Path below `into` for an entry, or undefined to leave it out. Default: the entry's own path. */
  readonly select?: (entry: PlacedEntry) => string | undefined;
  readonly limits?: ExtractLimits;
  /** The unpacked bytes of a payload, proved; default: those in the archive itself. */
  readonly read?: ReadEntry | undefined;
  /** Flush every file and folder to disk before returning. */
  readonly sync?: boolean;
  readonly signal: AbortSignal;
}

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Writes the selected entries as independent files (a hard link becomes a file of its own). Returns how many bytes and
 * files there are. Damage found on the way is an error; what was written until then stays for the caller to remove.
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
  const chosen = choose(source.name, index, select, limits);
  const folders = new Set<string>();
  let bytes = 0;
  for (const { entry, payload, target } of chosen) {
    signal.throwIfAborted();
    const path = join(into, target);
    try {
      await makeFolders(dirname(path), folders);
      const file = await open(path, FLAGS, entry.mode);
      try {
        await writePayload(read(payload, { signal }), file);
        // The umask took bits away when the file was created.
        await file.chmod(entry.mode);
        if (sync) await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      if (error instanceof CurlewError || signal.aborted) throw error;
      if (errnoOf(error) === 'EEXIST') throw new CurlewError('FILE_EXISTS', `extract ${path}: it exists already`);
      throw fileError(`extract ${path}`, error);
    }
    bytes += entry.size;
  }
  if (sync) for (const folder of folders.add(into)) await syncFolder(folder);
  return { bytes, files: chosen.length };
}

interface Chosen {
  readonly entry: PlacedEntry;
  /** The entry that holds the bytes: another one for a hard link. */
  readonly payload: PlacedEntry;
  readonly target: string;
}

/** `PACKAGE_INVALID` for an archive that {@link extractEntries} would not extract as a whole. Nothing of it is read. */
export function requireExtractable(name: string, index: ArchiveIndex): void {
  choose(name, index, undefined, EXTRACT_LIMITS);
}

/** Judges the limits from the index alone, before anything is written. */
function choose(
  name: string,
  { entries }: ArchiveIndex,
  select: ExtractOptions['select'],
  limits: ExtractLimits,
): readonly Chosen[] {
  const tooMuch = (what: string): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${name}: ${what}`, { hint: 'it is refused before anything of it is written' });
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const chosen: Chosen[] = [];
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
    chosen.push({ entry, payload, target: safePath(target, name) });
    if (chosen.length > limits.files) throw tooMuch(`it holds more than ${limits.files} files`);
  }
  return chosen;
}

/** Makes a folder and those above it once; they get 0755 whatever the umask takes. */
async function makeFolders(folder: string, made: Set<string>): Promise<void> {
  if (made.has(folder)) return;
  // Without a first one that was made there is nothing to set.
  const shortest = (await mkdir(folder, { recursive: true }))?.length ?? Infinity;
  for (let path = folder; path.length >= shortest; path = dirname(path)) {
    await chmod(path, 0o755);
    made.add(path);
  }
  made.add(folder);
}

async function writePayload(chunks: AsyncIterable<Uint8Array>, file: FileHandle): Promise<void> {
  // Blocks come in pieces of 64 KiB: gathered, a large file costs a sixteenth of the calls.
  let batch: Uint8Array[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    for (let buffers = batch, left = size; left > 0;) {
      const { bytesWritten } = await file.writev(buffers);
      left -= bytesWritten;
      if (left > 0) buffers = [Buffer.concat(buffers).subarray(bytesWritten)];
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
