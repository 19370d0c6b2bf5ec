/**
 * Writes an archive whose layout is known: writes payloads to their final places, several at once, and renames the file only
 * when it is complete, verified and synced.
 *
 * Until then it is `.<name>.partial` next to the target. Its table of contents is written first, so that a later run can see
 * the place of each payload and reuse the bytes of an interrupted run.
 */
import { readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hexOf } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { openLeft, openOrMake } from '../../platform/files/left-file.ts';
import { requireSpace } from '../../platform/files/space.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import type { PlacedEntry } from './entry.ts';
import type { FramePool } from './frame-pool.ts';
import type { FrameSink } from './frame-sink.ts';
import type { ArchivePlan, ArchivePiece } from './place.ts';
import { fileSource, openFileSource, readIndex } from './read.ts';

export interface ArchiveWriter {
  /** Writes a packed payload, as returned by `packBytes`, to its place. */
  putMember: (entry: PlacedEntry, member: Uint8Array) => Promise<void>;
  /** Writes a packed payload from a file that contains only the member. */
  putMemberFile: (entry: PlacedEntry, path: string) => Promise<void>;
  /** Opens the place of a stored payload, of which `from` raw bytes already exist; none if `fresh`. */
  openPayload: (entry: PlacedEntry, options: { readonly fresh: boolean }) => Promise<Payload>;
  /** Completes the file and renames it. */
  commit: () => Promise<void>;
  /** Closes the file; `keep` leaves the partial file for a later run. */
  abandon: (options: { readonly keep: boolean }) => Promise<void>;
}

export interface Payload {
  readonly from: number;
  readonly write: FrameSink['write'];
  /** Copies as much as possible from a stored member of another file; returns the number of raw bytes that exist now. */
  readonly copyFrom: (fd: number, offset: number) => Promise<number>;
  /** Closes the payload; `DIGEST_MISMATCH` if the bytes do not match the entry. */
  readonly finish: () => Promise<void>;
  readonly abandon: () => Promise<void>;
}

export function partialPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.partial`);
}

/** Opens the partial file of `path` for this plan; reuses that of an interrupted run of the same plan. */
export async function createArchiveWriter(
  path: string,
  { index, pieces }: ArchivePlan,
  { pool, signal }: { readonly pool: FramePool; readonly signal: AbortSignal },
): Promise<ArchiveWriter> {
  const partial = partialPath(path);
  const doing = `write ${path}`;
  const handle = await openPartialOf(partial, index.tocDigest, signal);
  const resumed = handle !== undefined;
  const file = handle ?? (await makePartial(partial, { size: index.size, doing }));
  const end = pieces.filter(({ offset }) => offset >= index.tocOffset);
  const failed = async (error: unknown): Promise<never> => {
    await file.close();
    await rm(partial, { force: true });
    throw fileError(doing, error);
  };
  if (!resumed) await writePieces(file, end).catch(failed);
  return {
    putMember: async (entry, member) => {
      await writeFully(file, member, entry.offset).catch((error: unknown) => {
        throw fileError(doing, error);
      });
    },
    putMemberFile: async (entry, from) => {
      await copyFile(from, file, entry).catch((error: unknown) => {
        throw fileError(doing, error);
      });
    },
    openPayload: async (entry, { fresh }) => openPayload(file, entry, { pool, resumed: resumed && !fresh }),
    commit: async () => {
      try {
        await writePieces(file, pieces);
        await file.sync();
        await file.close();
        await rename(partial, path);
        await syncFolder(dirname(path));
      } catch (error) {
        throw fileError(doing, error);
      }
    },
    abandon: async ({ keep }) => {
      await file.close();
      if (!keep) await rm(partial, { force: true });
    },
  };
}

/** The existing partial file of this plan; undefined if there is none, or if it is anything else. */
async function openPartialOf(path: string, tocDigest: string, signal: AbortSignal): Promise<FileHandle | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await openLeft(path, 'write');
    if (file === undefined) return undefined;
    const source = fileSource(file, path, (await file.stat()).size);
    if ((await readIndex(source, { signal })).tocDigest === tocDigest) return file;
    await file.close();
    return undefined;
  } catch (error) {
    await file?.close();
    if (error instanceof CurlewError && !signal.aborted) return undefined;
    throw error;
  }
}

async function makePartial(
  path: string,
  { size, doing }: { readonly size: number; readonly doing: string },
): Promise<FileHandle> {
  try {
    await rm(path, { force: true });
    await requireSpace(dirname(path), size, doing);
    return await openOrMake(path);
  } catch (error) {
    throw fileError(doing, error);
  }
}

async function writePieces(file: FileHandle, pieces: readonly ArchivePiece[]): Promise<void> {
  for (const { offset, data } of pieces) await writeFully(file, data, offset);
}

async function copyFile(from: string, file: FileHandle, entry: PlacedEntry): Promise<void> {
  // Small members are copied in one call; larger ones are streamed.
  if (entry.packed <= 1 << 20) {
    await writeFully(file, await readFile(from), entry.offset);
    return;
  }
  await using source = await openFileSource(from);
  let at = entry.offset;
  for await (const data of source.read(0, entry.packed, { signal: new AbortController().signal })) {
    await writeFully(file, data, at);
    at += data.byteLength;
  }
}

async function openPayload(
  file: FileHandle,
  entry: PlacedEntry,
  { pool, resumed }: { readonly pool: FramePool; readonly resumed: boolean },
): Promise<Payload> {
  const sink = pool.openSink(file.fd, entry.offset, entry.size);
  const from = resumed ? await sink.takeOver({ fd: file.fd, offset: entry.offset }, false) : 0;
  return {
    from,
    write: sink.write,
    copyFrom: async (fd, offset) => sink.takeOver({ fd, offset }, true),
    finish: async () => {
      const hex = await sink.finish();
      if (hex === hexOf(entry.digest)) return;
      throw new CurlewError('DIGEST_MISMATCH', `${entry.path}: got sha256:${hex}`);
    },
    abandon: sink.abandon,
  };
}
