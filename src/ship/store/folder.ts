/**
 * A folder as a store. Objects are plain files at their keys, so any web server can serve the folder. Everything else
 * is in one hidden tree. The folder must be on one file system with hard links.
 */
import type { BigIntStats } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { CurlewError, errnoOf, fileError, ifExists } from '../../core/errors.ts';
import { compareText } from '../../core/ref.ts';
import {
  contentHash,
  findFile,
  nameExclusively,
  nameReplacing,
  partialCopy,
  sweepStore,
  writePartial,
} from './folder-files.ts';
import {
  bringForward,
  bringForwardIfPossible,
  claimGeneration,
  newestGeneration,
  generationFolder,
} from './folder-generations.ts';
import { openInside, removeEmptyInside, removeInside, requireInside } from './folder-inside.ts';
import { readNote, noteFolder, removeNote, writeNote, type Note } from './folder-notes.ts';
import { checkedKey, keyProblem } from './key.ts';
import { changed, missing, rangeIn, refuseEarly, tooLarge, unmet } from './refusals.ts';
import type { ByteRange, Conditions, GetOptions, Store, StoredObject, StorePlace } from './store.ts';

const READ_SIZE = 1 << 20;
/** The etag of a file without a note is its hash up to this size, its size and mtime above it. */
const HASH_LIMIT = 64 << 10;

interface Located {
  readonly object: StoredObject;
  readonly note: Note | undefined;
  readonly path: string;
  readonly stat: BigIntStats;
  readonly generation: number;
}

/** `place.server` of every folder store of this machine. */
const FOLDER_SERVER = 'file:';

/** True for a store whose objects are in a folder of this machine. */
export function isFolderStore({ place }: Pick<Store, 'place'>): boolean {
  return place.server === FOLDER_SERVER;
}

/** A store in a folder. One that does not exist has no objects, and only reads of it are defined. */
export function createFolderStore(root: string): Store {
  let swept: Promise<void> | undefined;
  const sweep = async (): Promise<void> => (swept ??= sweepStore(root));
  return {
    address: root,
    place: { server: FOLDER_SERVER, base: root },
    head: async (key) =>
      (await withFileErrors(`stat ${key} in ${root}`, () => locate(root, checkedKey(key, root))))?.object,
    get: async (key, options) =>
      withFileErrors(`read ${key} in ${root}`, () => get(root, checkedKey(key, root), options)),
    read: async (key, { limit, signal }) =>
      withFileErrors(`read ${key} in ${root}`, async () => readWhole(root, checkedKey(key, root), limit, signal)),
    put: async (key, body, options) =>
      withFileErrors(`write ${key} to ${root}`, async () => {
        checkedKey(key, root);
        await refuseEarly(root, key, options, async () => (await locate(root, key))?.object);
        await sweep();
        const partial = await writePartial(root, body, options);
        await removingPartial(partial.path, async () => {
          if (options.digest !== undefined && options.digest !== partial.digest) {
            throw new CurlewError(
              'DIGEST_MISMATCH',
              `cannot write ${key} to ${root}: the bytes do not match the digest`,
            );
          }
          const note = { digest: partial.digest, metadata: options.metadata ?? {} };
          await commit(root, key, { path: partial.path, shared: false }, note, options);
        });
        return requireObject(root, key);
      }),
    copy: async (fromKey, toKey, options) =>
      withFileErrors(`copy ${fromKey} to ${toKey} in ${root}`, async () => {
        checkedKey(toKey, root);
        await refuseEarly(root, toKey, options, async () => (await locate(root, toKey))?.object);
        const source = folderOf(options.from ?? { server: FOLDER_SERVER, base: root });
        const from = await locate(source, checkedKey(fromKey, source));
        if (from === undefined) throw missing(source, fromKey);
        if (options.sourceIfMatch !== undefined) requireEtag(source, from.object, options.sourceIfMatch);
        await sweep();
        await copyTo(root, from, toKey, options);
        return requireObject(root, toKey);
      }),
    list: (prefix, { signal }) => list(root, prefix, signal),
    delete: async (key) =>
      withFileErrors(`delete ${key} in ${root}`, async () => {
        checkedKey(key, root);
        // Keys below a folder are other objects, with their own notes and generations.
        if ((await locate(root, key)) === undefined) return;
        await removeInside(root, generationFolder(root, key), { recursive: true });
        await removeInside(root, join(root, key));
        await removeInside(root, noteFolder(root, key), { recursive: true });
        await removeEmptyInside(root, root, join(root, key));
        for (const folder of [generationFolder, noteFolder])
          await removeEmptyInside(root, folder(root), folder(root, key));
      }),
  };
}

function folderOf({ server, base }: StorePlace): string {
  if (server === FOLDER_SERVER) return base;
  throw new CurlewError('UNSUPPORTED', `${base}: a folder cannot copy from another kind of store`);
}

async function withFileErrors<Result>(action: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    // Only system errors become file errors: a canceled call must not be reported as a disk failure.
    if (errnoOf(error) === undefined) throw error;
    throw fileError(action, error);
  }
}

async function removingPartial(partial: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    await rm(partial, { force: true });
  }
}

function requireEtag(root: string, { key, etag }: StoredObject, expected: string): void {
  if (etag !== expected) throw changed(root, key);
}

async function locate(root: string, key: string): Promise<Located | undefined> {
  const newest = await newestGeneration(root, key);
  if (newest !== undefined) await bringForwardIfPossible(root, key);
  const file = await findFile(root, newest?.path ?? join(root, key));
  if (file === undefined) return undefined;
  const { path, stat } = file;
  const note = await readNote(root, key, stat);
  const content =
    note?.digest ?? (stat.size <= HASH_LIMIT ? await contentHash(root, path) : `${stat.size}-${stat.mtimeNs}`);
  const generation = newest?.number ?? 0;
  const etag = `"${generation === 0 ? '' : `${generation}.`}${content}"`;
  return {
    object: { key, size: Number(stat.size), etag, metadata: note?.metadata ?? {} },
    note,
    path,
    stat,
    generation,
  };
}

async function requireObject(root: string, key: string): Promise<StoredObject> {
  const located = await locate(root, key);
  if (located === undefined) throw missing(root, key);
  return located.object;
}

async function get(
  root: string,
  key: string,
  { range, ifMatch, signal, allocate }: GetOptions,
): ReturnType<Store['get']> {
  const located = await locate(root, key);
  if (located === undefined) throw missing(root, key);
  if (ifMatch !== undefined) requireEtag(root, located.object, ifMatch);
  const wanted = rangeIn(root, located.object, range);
  return { ...located.object, body: readRange(root, located, wanted, { signal, allocate }) };
}

async function readWhole(root: string, key: string, limit: number, signal: AbortSignal): ReturnType<Store['read']> {
  const located = await locate(root, key);
  if (located === undefined) return undefined;
  const { object } = located;
  if (object.size > limit) throw tooLarge(root, key, limit);
  return { data: await buffer(readRange(root, located, { offset: 0, length: object.size }, { signal })), object };
}

async function* readRange(
  root: string,
  { object, path, stat }: Located,
  { offset, length }: ByteRange,
  { signal, allocate = (size) => Buffer.allocUnsafeSlow(size) }: GetOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reading = `read ${object.key} in ${root}`;
  await using file = await withFileErrors(reading, () => openInside(root, path));
  const now = await withFileErrors(reading, () => file.stat({ bigint: true }));
  if (now.ino !== stat.ino || now.size !== stat.size || now.mtimeNs !== stat.mtimeNs) {
    requireEtag(root, object, 'changed');
  }
  for (let done = 0; done < length;) {
    signal.throwIfAborted();
    const chunk = allocate(Math.min(READ_SIZE, length - done));
    const { bytesRead } = await withFileErrors(reading, () => file.read(chunk, 0, chunk.byteLength, offset + done));
    if (bytesRead === 0) requireEtag(root, object, 'changed');
    done += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

/**
 * Gives a partial file its final name, and decides atomically on its conditions. Writes the note first, so that bytes and metadata appear
 * together.
 */
async function commit(
  root: string,
  key: string,
  partial: { readonly path: string; readonly shared: boolean },
  note: Note,
  { ifNoneMatch, ifMatch }: Conditions,
): Promise<boolean> {
  const before = await locate(root, key);
  const stamp = await writeNote(root, key, partial, note);
  if (stamp === undefined) return false;
  const target = join(root, key);
  const done = await (async () => {
    if (ifNoneMatch !== undefined) return before === undefined && nameExclusively(root, partial.path, target);
    if (ifMatch !== undefined && before?.object.etag !== ifMatch) return false;
    if (ifMatch === undefined && (before?.generation ?? 0) === 0) {
      await nameReplacing(root, partial.path, target);
      return true;
    }
    const claimed = await claimGeneration(root, key, (before?.generation ?? 0) + 1, partial.path);
    if (claimed) await bringForward(root, key);
    return claimed;
  })();
  const now = done ? undefined : await locate(root, key);
  const isOurs = (stat: BigIntStats | undefined): boolean =>
    stat !== undefined && stat.size === stamp.size && stat.mtimeNs === stamp.mtimeNs;
  if (!done) {
    if (!isOurs(now?.stat)) await removeNote(root, key, stamp);
    throw unmet(root, key, { ifNoneMatch });
  }
  if (before !== undefined && ifMatch === undefined && !isOurs(before.stat)) await removeNote(root, key, before.stat);
  return true;
}

/** Links to the source file where possible, so that a release with few changes needs little space. */
async function copyTo(
  root: string,
  from: Located,
  toKey: string,
  { ifNoneMatch, metadata, signal }: Parameters<Store['copy']>[2],
): Promise<void> {
  for (const share of [true, false]) {
    signal.throwIfAborted();
    const path = await partialCopy(root, from.path, { share });
    let named = false;
    await removingPartial(path, async () => {
      const digest = from.note?.digest ?? (`sha256:${await contentHash(root, path)}` as const);
      const note = { digest, metadata: metadata ?? from.object.metadata };
      named = await commit(root, toKey, { path, shared: share }, note, { ifNoneMatch });
    });
    if (named) return;
  }
}

async function* list(root: string, prefix: string, signal: AbortSignal): ReturnType<Store['list']> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  if (folder !== '') checkedKey(folder.slice(0, -1), root);
  const keys: string[] = [];
  const walk = async (below: string): Promise<void> => {
    signal.throwIfAborted();
    const reading = requireInside(root, join(root, below)).then(async (at) => readdir(at, { withFileTypes: true }));
    const entries = await ifExists(`list ${root}`, reading);
    for (const entry of entries ?? []) {
      const key = `${below}${entry.name}`;
      if (keyProblem(key) !== undefined) continue;
      if (entry.isDirectory() && (key.startsWith(prefix) || prefix.startsWith(`${key}/`))) await walk(`${key}/`);
      else if (entry.isFile() && key.startsWith(prefix)) keys.push(key);
    }
  };
  await walk(folder);
  for (const key of keys.toSorted(compareText)) {
    const located = await withFileErrors(`list ${root}`, () => locate(root, key));
    if (located === undefined) continue;
    const { size, etag } = located.object;
    // A hard link has the mtime of its source, but linking updates ctime.
    yield { key, size, etag, modified: located.stat.ctime };
  }
}
