/**
 * A file that is written in any order, in one run or in several, and what is known of it. It stands beside the file that
 * is to be: `FILE.partial`, with a note in `FILE.partial.json` of what is on disk.
 */
import { constants, open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import type { RangeSource } from '../formats/archive/entry.ts';
import { fileSource } from '../formats/archive/read.ts';
import { isDigest, type Digest } from '../core/digest.ts';
import { errnoOf, fileError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { openOrMake, readLeft } from '../platform/files/left-file.ts';
import { nameFile } from '../platform/files/name-file.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { writeFully } from '../platform/files/write-fully.ts';
import { createRanges, type Range, type Ranges } from './ranges.ts';

/** Which file it is. */
export interface Identity {
  readonly size: number;
  /** Of the table of contents, or of the whole file where that is known instead; undefined before either is. */
  readonly contents: Digest | undefined;
  /** The place that it was begun from, and what that says of its version. */
  readonly from: string;
  readonly etag: string;
}

export interface PartialFile extends AsyncDisposable {
  /** To read what is there; as long as the whole file. */
  readonly source: RangeSource;
  /** What has been written, in this run or before. */
  readonly have: Ranges;
  readonly identity: () => Identity;
  /** Tells what became known of the file. */
  readonly identify: (identity: Identity) => void;
  /** The chunk may be used again when the call returns. */
  readonly write: (offset: number, chunk: Uint8Array) => Promise<void>;
  /** What had been written when it was called is on disk, and noted there. Calls at once share the work. */
  readonly checkpoint: () => Promise<void>;
  /** Gives the file its name. Another file of that name is replaced with `force`, and `FILE_EXISTS` without. */
  readonly finish: (options: { readonly force: boolean }) => Promise<void>;
}

/** A note is one line; lines are added until the file is as long as this. */
const NOTE_ROOM = 1 << 20;
const NOTE_LIMIT = 64 << 20;

/** Names beside the file that is to be. */
export function pathsBeside(file: string): {
  readonly partial: string;
  readonly note: string;
  /** What was fetched of another version: its payloads may be of use. */
  readonly older: string;
} {
  const partial = `${file}.partial`;
  return { partial, note: `${partial}.json`, older: `${partial}.old` };
}

interface Note extends Identity {
  readonly have: readonly Range[];
}

function formatNote({ size, contents, from, etag }: Identity, have: readonly Range[]): string {
  const pairs = have.map(({ offset, end }) => [offset, end]);
  return `${JSON.stringify({ format: 1, size, contents, from, etag, have: pairs })}\n`;
}

/** The last line that is whole counts: a machine that went down may have cut off the one behind it. */
function lastNote(text: string): Note | undefined {
  for (let end = text.lastIndexOf('\n'); end > 0;) {
    const start = text.lastIndexOf('\n', end - 1);
    const note = parseNote(text.slice(start + 1, end));
    if (note !== undefined) return note;
    end = start;
  }
  return undefined;
}

/** Undefined for anything but a note of ours: then every byte that lies there must prove itself. */
function parseNote(text: string): Note | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value['format'] !== 1) return undefined;
  const { size, contents, from, etag, have } = value;
  if (typeof size !== 'number' || typeof from !== 'string' || typeof etag !== 'string') return undefined;
  if (contents !== undefined && (typeof contents !== 'string' || !isDigest(contents))) return undefined;
  if (!Array.isArray(have)) return undefined;
  const ranges = have.map((pair: unknown) => {
    const [offset, end]: readonly unknown[] = Array.isArray(pair) ? pair : [];
    return isPlace(offset) && isPlace(end) && end <= size ? { offset, end } : undefined;
  });
  if (ranges.includes(undefined)) return undefined;
  return { size, contents, from, etag, have: ranges.filter((range) => range !== undefined) };
}

function isPlace(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Whether two descriptions can be of one file. */
export function isSameFile(a: Identity, b: Identity): boolean {
  if (a.size !== b.size) return false;
  if (a.contents !== undefined && b.contents !== undefined) return a.contents === b.contents;
  return a.from !== b.from || a.etag === b.etag;
}

/** What an earlier run has left beside a file. */
export interface Left {
  /** Of another file than is wanted: the place that it came from. */
  readonly otherFrom: string | undefined;
  /** That one goes aside, for its payloads may be of use; otherwise what is there is used again, or removed. */
  readonly aside: boolean;
  /** Bytes of the disk that are used again or given back. */
  readonly bytes: number;
}

async function readNote(file: string): Promise<Note | undefined> {
  return lastNote((await readLeft(pathsBeside(file).note, NOTE_LIMIT)) ?? '');
}

/** Looks at what is there, and changes nothing. */
export async function lookAtLeft(file: string, wanted: Identity): Promise<Left> {
  const { partial, older } = pathsBeside(file);
  const note = await readNote(file);
  const isOther = note !== undefined && !isSameFile(note, wanted) && (await bytesOnDisk(partial)) > 0;
  const aside = isOther && note.contents !== undefined;
  // What goes aside takes the place of what was put there before.
  const bytes = await bytesOnDisk(aside ? older : partial);
  return { otherFrom: isOther ? note.from : undefined, aside, bytes };
}

/** What a file takes up: one with holes is smaller than it says. */
async function bytesOnDisk(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? 0 : found.blocks * 512;
}

async function guarded<Result>(doing: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw fileError(doing, error);
  }
}

/** Opens what an earlier run has left of this file, or begins it. What it left of another one is put aside. */
export async function openPartial(file: string, wanted: Identity): Promise<PartialFile> {
  const { partial, note: notePath, older } = pathsBeside(file);
  const doing = `write ${partial}`;
  const note = await readNote(file);
  if (note !== undefined && !isSameFile(note, wanted)) {
    await guarded(doing, () => (note.contents === undefined ? rm(partial, { force: true }) : putAside(partial, older)));
    await rm(notePath, { force: true });
  }
  const known = note !== undefined && isSameFile(note, wanted) ? note : undefined;
  const handle = await openOrMake(partial);
  try {
    const found = await guarded(doing, () => handle.stat());
    const have = createRanges(known?.have ?? [{ offset: 0, end: found.size }]);
    have.remove({ offset: Math.min(found.size, wanted.size), end: Number.MAX_SAFE_INTEGER });
    await guarded(doing, () => handle.truncate(wanted.size));
    return growing(file, {
      handle,
      source: fileSource(handle, partial, wanted.size),
      have,
      identity: { ...wanted, contents: wanted.contents ?? known?.contents },
    });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function putAside(partial: string, older: string): Promise<void> {
  try {
    await rename(partial, older);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** Adds lines to a file: that needs one sync, where a file in the place of another needs three. */
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

interface Opened {
  readonly handle: FileHandle;
  readonly source: RangeSource;
  readonly have: Ranges;
  identity: Identity;
}

function growing(file: string, opened: Opened): PartialFile {
  const { handle, source, have } = opened;
  const { partial, note, older } = pathsBeside(file);
  const doing = `write ${partial}`;
  const notes = noteWriter(note);
  const save = async (): Promise<void> => {
    // First what is said, then what it says: nothing is noted that is not on disk.
    const text = formatNote(opened.identity, have.list());
    await guarded(doing, () => handle.datasync());
    await notes.write(text);
  };
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const saveNext = async (): Promise<void> => {
    await current.catch(() => undefined);
    next = undefined;
    current = save();
    await current;
  };
  return {
    source,
    have,
    identity: () => opened.identity,
    identify: (identity) => {
      opened.identity = identity;
    },
    write: async (offset, chunk) => {
      await guarded(doing, () => writeFully(handle, chunk, offset));
      have.add({ offset, end: offset + chunk.byteLength });
    },
    checkpoint: async () => (next ??= saveNext()),
    finish: async ({ force }) =>
      guarded(`write ${file}`, async () => {
        await handle.sync();
        await nameFile(partial, file, force);
        await rm(partial, { force: true });
        await rm(note, { force: true });
        await rm(older, { force: true });
      }),
    [Symbol.asyncDispose]: async () => {
      await current.catch(() => undefined);
      await notes.close();
      await handle.close();
    },
  };
}
