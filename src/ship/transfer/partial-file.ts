/**
 * The file that a transfer writes to before it has its final name, in any order, in one run or in several: `FILE.partial`, and
 * a note of the bytes that are on disk in `FILE.partial.json`. The contract, wherever the bytes come from:
 *
 * - Both files are created exclusively. A link, a pipe, or a file that another user owns or can write to is refused, untouched.
 * - A note lists only synced bytes: after a power cut or SIGKILL, at most the last few MiB of each connection are missing.
 * - A note only saves work. The caller verifies the whole file; without anything to verify it by, only bytes that the note
 *   lists are resumed (`noted`), and only from a server that still has the same version.
 * - Bytes of another version are removed, or moved aside for their payloads.
 * - The final name is given last, to a complete and synced file; then the note goes.
 * - Until then only its owner may read the file: it may have secrets, which only the whole file shows.
 * - Without a byte that can be resumed, neither file stays.
 */
import { jsonIn } from '../../core/json.ts';
import { constants, lstat, open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as v from 'valibot';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { fileSource } from '../../formats/archive/read.ts';
import type { Digest } from '../../core/digest.ts';
import { fileError, unless } from '../../core/errors.ts';
import { digest, fits, longList, size } from '../../core/schema.ts';
import { openOrMake, readLeft, statsOfNew } from '../../platform/files/left-file.ts';
import { differs } from '../../platform/http/download.ts';
import { nameFile } from '../../platform/files/name-file.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { createRanges, type Range, type Ranges } from './ranges.ts';

/** Which version of which file it is. */
export interface FileIdentity {
  /** Bytes of the whole file; undefined if not known. */
  readonly size: number | undefined;
  /** Digest of the table of contents, or of the whole file if that is known instead; undefined before either is. */
  readonly contents: Digest | undefined;
  /** Address that it was begun from, without secrets. */
  readonly from: string;
  /** Entity tag of the file there; undefined if not known yet. */
  readonly etag: string | undefined;
}

export interface PartialFile extends AsyncDisposable {
  /** The file as far as its size is known; bytes that have not been written are zeros. */
  readonly source: RangeSource;
  /** Ranges that have been written, in this run or before. */
  readonly have: Ranges;
  readonly identity: () => FileIdentity;
  /** Records new facts about the file. */
  readonly identify: (identity: FileIdentity) => void;
  /** The chunk may be used again when the call returns. */
  readonly write: (offset: number, chunk: Uint8Array) => Promise<void>;
  /** {@link write} for one connection, with a checkpoint every 1.5 MiB while the next bytes arrive. */
  readonly writer: () => PartialFile['write'];
  /** Syncs and notes all bytes written before the call. Concurrent calls share the work. */
  readonly checkpoint: () => Promise<void>;
  /** Discards all bytes, first in the note on disk: the next ones may be of another version. */
  readonly restart: () => Promise<void>;
  /** Gives the file its name. Another file of that name is replaced with `force`, and `FILE_EXISTS` without. */
  readonly finish: (options: FinishOptions) => Promise<void>;
}

export interface FinishOptions {
  readonly force: boolean;
  /** Whether only its owner may read the complete file; default: the umask decides. */
  readonly isPrivate?: ((source: RangeSource) => Promise<boolean>) | undefined;
}

/** A note is one line; lines are added until the file is as long as this. */
const NOTE_ROOM = 1 << 20;
const NOTE_LIMIT = 64 << 20;
/**
 * A connection syncs and notes its bytes this often, and writes at most as many during a checkpoint: a killed run loses less
 * than 4 MiB a connection.
 */
const STEP = 3 << 19;

export interface PartialPaths {
  /** The final name. */
  readonly file: string;
  readonly partial: string;
  readonly note: string;
  /** For the bytes of another version, if their payloads may be reused. */
  readonly older?: string;
}

/** Names next to the final file. */
export function pathsBeside(file: string): Required<PartialPaths> {
  const partial = `${file}.partial`;
  return { file, partial, note: `${partial}.json`, older: `${partial}.old` };
}

interface Note extends FileIdentity {
  readonly have: readonly Range[];
}

function formatNote({ size, contents, from, etag }: FileIdentity, have: readonly Range[]): string {
  const pairs = have.map(({ offset, end }) => [offset, end]);
  return `${JSON.stringify({ format: 1, size, contents, from, etag, have: pairs })}\n`;
}

/** The last complete line counts: a power cut may have cut off the one after it. */
function lastNote(text: string): Note | undefined {
  for (let end = text.lastIndexOf('\n'); end > 0;) {
    const start = text.lastIndexOf('\n', end - 1);
    const note = parseNote(text.slice(start + 1, end));
    if (note !== undefined) return note;
    end = start;
  }
  return undefined;
}

const noteSchema = v.object({
  format: v.literal(1),
  size: v.optional(size),
  contents: v.optional(digest),
  from: v.string(),
  etag: v.optional(v.string()),
  have: longList(v.looseTuple([size, size])),
});

/** Undefined for anything else, such as the notes of older versions. */
function parseNote(text: string): Note | undefined {
  const value = jsonIn(text);
  if (!fits(noteSchema, value)) return undefined;
  const { size: whole, contents, from, etag } = value;
  const have = value.have.map(([offset, end]) => ({ offset, end }));
  return have.every(({ end }) => end <= (whole ?? end)) ? { size: whole, contents, from, etag, have } : undefined;
}

/** False if two descriptions cannot be of one file. */
export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  if (differs(a.size, b.size)) return false;
  if (a.contents !== undefined && b.contents !== undefined) return a.contents === b.contents;
  return a.from !== b.from || !differs(a.etag, b.etag);
}

/** The partial file that an earlier run has left next to the final file. */
export interface LeftPartial {
  /** If it is of another file: the address that it came from. */
  readonly otherFrom: string | undefined;
  /** That one is moved aside for its payloads; otherwise it is resumed or removed. */
  readonly aside: boolean;
  /** Bytes on disk that are reused or freed. */
  readonly bytes: number;
}

async function readNote({ note }: PartialPaths): Promise<Note | undefined> {
  return lastNote((await readLeft(note, NOTE_LIMIT)) ?? '');
}

/** Inspects what an earlier run has left, and changes nothing. */
export async function inspectPartial(paths: Required<PartialPaths>, requested: FileIdentity): Promise<LeftPartial> {
  const { partial, older } = paths;
  const note = await readNote(paths);
  const isOther = note !== undefined && !isSameFile(note, requested) && (await bytesOnDisk(partial)) > 0;
  const aside = isOther && note.contents !== undefined;
  // The partial file that is moved aside replaces an older one there.
  const bytes = await bytesOnDisk(aside ? older : partial);
  return { otherFrom: isOther ? note.from : undefined, aside, bytes };
}

/** A sparse file uses less than its size. */
async function bytesOnDisk(path: string): Promise<number> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? 0 : stats.blocks * 512;
}

async function guarded<Result>(doing: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw fileError(doing, error);
  }
}

/**
 * Opens what an earlier run has left of this file, or creates it. Bytes of another version are moved aside, or removed. `keep`
 * says which bytes of the same version count: `all`, if the caller verifies them, or only those that the note lists.
 */
export async function openPartial(
  paths: PartialPaths,
  requested: FileIdentity,
  keep: 'all' | 'noted',
): Promise<PartialFile> {
  const { partial, older } = paths;
  const doing = `write ${partial}`;
  const note = await readNote(paths);
  // Bytes that a digest was to verify need not be of the version in the note.
  const isKnown = note !== undefined && isSameFile(note, requested) && (keep === 'all' || note.contents === undefined);
  const known = isKnown ? note : undefined;
  if (note !== undefined && known === undefined) {
    const isUseful = note.contents !== undefined && older !== undefined;
    await guarded(doing, () => (isUseful ? unless(['ENOENT'], rename(partial, older)) : rm(partial, { force: true })));
  }
  const handle = await openOrMake(partial, 0o600);
  let file: PartialFile | undefined;
  try {
    const identity = {
      ...requested,
      contents: requested.contents ?? known?.contents,
      etag: requested.etag ?? known?.etag,
    };
    const stats = await guarded(doing, () => handle.stat());
    // Another program may have begun the file. Some file systems allow no other mode.
    if ((stats.mode & 0o077) !== 0) await handle.chmod(0o600).catch(() => undefined);
    const have = createRanges(known?.have ?? (keep === 'all' ? [{ offset: 0, end: stats.size }] : []));
    const listed = have.bytes();
    have.remove({ offset: Math.min(stats.size, requested.size ?? stats.size), end: Number.MAX_SAFE_INTEGER });
    const isStale = known === undefined ? note !== undefined || requested.size !== undefined : have.bytes() < listed;
    // Before the file grows: neither a note nor its absence may stand for bytes that this run has yet to write.
    file = writing(paths, handle, have, identity);
    if (isStale) await file.checkpoint();
    await guarded(doing, () => handle.truncate(requested.size ?? have.list().at(-1)?.end ?? 0));
    return file;
  } catch (error) {
    await (file === undefined ? handle.close() : file[Symbol.asyncDispose]());
    throw error;
  }
}

/** Completes a {@link PartialFile.finish} that was killed: the partial file is another link to the final one. */
export async function removeFinished(paths: PartialPaths): Promise<void> {
  const [partial, file] = await Promise.all(
    [paths.partial, paths.file].map((path) => lstat(path, { bigint: true }).catch(() => undefined)),
  );
  if (partial === undefined || partial.ino !== file?.ino || partial.dev !== file.dev) return;
  await guarded(`write ${paths.file}`, () => removePartial(paths));
}

/** Removes what is left of a transfer that nothing resumes. */
export async function removePartial({ partial, note, older }: PartialPaths): Promise<void> {
  for (const path of [partial, note, older]) if (path !== undefined) await rm(path, { force: true });
}

/** Appends lines to a note: that needs one sync, replacing the file three. */
function noteWriter(path: string) {
  let opened: FileHandle | undefined;
  let room = 0;
  const close = async (): Promise<void> => {
    await opened?.close();
    opened = undefined;
  };
  return {
    close,
    write: async (line: string): Promise<void> => {
      if (opened === undefined || line.length > room) {
        await close();
        await writeStateFile(path, line, 0o644);
        const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW;
        opened = await guarded(`write ${path}`, () => open(path, flags));
        room = NOTE_ROOM - line.length;
        return;
      }
      const handle = opened;
      room -= line.length;
      await guarded(`write ${path}`, async () => {
        await handle.appendFile(line);
        await handle.datasync();
      });
    },
  };
}

/** Calls during one `save` share the next one. `idle` resolves when no save is running or waiting. */
function coalesced(save: () => Promise<void>) {
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const saveNext = async (): Promise<void> => {
    await current.catch(() => undefined);
    next = undefined;
    current = save();
    await current;
  };
  return {
    call: async (): Promise<void> => (next ??= saveNext()),
    idle: async (): Promise<void> => {
      await next?.catch(() => undefined);
      await current.catch(() => undefined);
    },
  };
}

/** Gives a file the mode of a new one in the same folder, unless it has it. */
async function takeMode(handle: FileHandle, folder: string, mode: number): Promise<void> {
  const wanted = await statsOfNew(folder, mode);
  if (wanted !== undefined && wanted.mode !== (await handle.stat()).mode) await handle.chmod(wanted.mode & 0o777);
}

function writing(paths: PartialPaths, handle: FileHandle, have: Ranges, opened: FileIdentity): PartialFile {
  const { file, partial } = paths;
  const doing = `write ${partial}`;
  const notes = noteWriter(paths.note);
  let identity = opened;
  let isNoted = true;
  let isFinished = false;
  const saving = coalesced(async () => {
    const text = formatNote(identity, have.list());
    isNoted = true;
    try {
      // The data first: nothing is noted that is not on disk.
      await guarded(doing, () => handle.datasync());
      await notes.write(text);
    } catch (error) {
      isNoted = false;
      throw error;
    }
  });
  const write = async (offset: number, chunk: Uint8Array): Promise<void> => {
    isNoted = false;
    await guarded(doing, () => writeFully(handle, chunk, offset));
    have.add({ offset, end: offset + chunk.byteLength });
  };
  const sourceNow = (): RangeSource => fileSource(handle, partial, identity.size ?? 0);
  return {
    get source() {
      return sourceNow();
    },
    have,
    identity: () => identity,
    identify: (changed) => {
      identity = changed;
    },
    write,
    writer: () => {
      let unnoted = 0;
      let noting: Promise<void> = Promise.resolve();
      return async (offset, chunk) => {
        await write(offset, chunk);
        unnoted += chunk.byteLength;
        if (unnoted < STEP) return;
        unnoted = 0;
        await noting;
        noting = saving.call();
        // The next call awaits it; until then its failure must not be an unhandled rejection.
        noting.catch(() => undefined);
      };
    },
    checkpoint: saving.call,
    restart: async () => {
      have.remove({ offset: 0, end: Number.MAX_SAFE_INTEGER });
      await saving.call();
    },
    finish: async ({ force, isPrivate }) =>
      guarded(`write ${file}`, async () => {
        await saving.idle();
        if (identity.size !== undefined) await handle.truncate(identity.size);
        await takeMode(handle, dirname(file), (await isPrivate?.(sourceNow())) === true ? 0o600 : 0o644);
        await handle.sync();
        await nameFile(partial, file, force);
        [isNoted, isFinished] = [true, true];
        await removePartial(paths);
      }),
    [Symbol.asyncDispose]: async () => {
      // A full disk takes no note either: then the last one still holds.
      if (!isNoted) await saving.call().catch(() => undefined);
      await saving.idle();
      await notes.close();
      await handle.close();
      // Nothing can be resumed from it, and it has the name of nothing useful.
      if (!isFinished && have.bytes() === 0) await removePartial({ file, partial, note: paths.note });
    },
  };
}
