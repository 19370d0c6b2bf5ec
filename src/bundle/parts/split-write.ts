/** Writes a file in parts, each of them synced before the next is begun, while the file itself comes into being. */
import { createHash } from 'node:crypto';
import { open, readFile, realpath, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import type { Digest } from '../../core/digest.ts';
import { asError, CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { formatHead, formatSums, type Part, PARTS_FORMAT, type PartsHead, partsPath } from '../../core/parts.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { openLeft } from '../../platform/files/left-file.ts';
import { partialName, sweepPartials } from '../../platform/files/partial.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { createEntryCheck, type EntryCheck } from '../write/entry-check.ts';
import {
  begunPath,
  type BegunSet,
  keepBegun,
  readBegun,
  readOlderHeads,
  type SetIdentity,
  sizeThere,
} from './parts-known.ts';
import { type Medium, type PlannedPart, planParts } from './split-plan.ts';
import { createWriteQueue, WRITES_AT_ONCE } from '../write/write-queue.ts';
import { mountOf, parseMounts } from '../../platform/files/mounts.ts';

/** What is split: an archive that is there, or one that is planned. */
export interface Whole {
  /** File name that the parts take theirs from. */
  readonly name: string;
  readonly source: RangeSource;
  readonly index: ArchiveIndex;
}

export interface SplitOptions {
  /** Where the parts go, in this order; each must be there. */
  readonly folders: readonly string[];
  /** Most bytes of a part; the file system may want less. */
  readonly limit: number | undefined;
  /** Small files that go beside each head file: what is in them by name. */
  readonly beside?: ReadonlyMap<string, Uint8Array>;
  /** Replace parts that are there; otherwise they are `FILE_EXISTS`. */
  readonly force: boolean;
  /** Prove every byte on its way; see {@link createEntryCheck}. */
  readonly verify: boolean;
  readonly proc?: string;
  /** Told where each part goes, before the first is written. */
  readonly onLayout?: (layout: readonly PlannedPart[]) => void;
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface WrittenParts {
  readonly head: PartsHead;
  /** In the order of the folders that hold any. */
  readonly media: readonly {
    readonly medium: Medium;
    /** The head file there. */
    readonly path: string;
    readonly parts: readonly Part[];
  }[];
  /** How many parts were there already, with the right digest. */
  readonly kept: number;
}

interface Work extends Pick<SplitOptions, 'report' | 'signal'> {
  readonly whole: Whole;
  readonly check: EntryCheck | undefined;
}

/**
 * Writes the parts, and beside those of each folder the head file of all and the sums of its own. A head file appears only
 * when every part is on disk. What is cut off is gone on with by the next call for the same file: parts that are there
 * with the right digest are not written again, unless they came from a file that proved to be damaged. What lacks room is told before anything is written (`NO_SPACE`).
 */
export async function writeParts(whole: Whole, options: SplitOptions): Promise<WrittenParts> {
  const { name, index } = whole;
  const { folders, limit = 0, force, report, signal } = options;
  const identity: SetIdentity = { name, size: index.size, tocDigest: index.tocDigest, limit, folders };
  const media = await lookAtMedia(folders, options);
  const begun = await prepare(identity, media, force);
  options.onLayout?.(begun.layout);
  const check = options.verify ? createEntryCheck(index, name, { signal }) : undefined;
  const work: Work = { whole, check, report, signal };
  report({ type: 'step-started', id: name, title: name, bytes: index.size });
  try {
    const { parts, kept } = await writeAll(identity, begun, work);
    await check?.finish();
    const head: PartsHead = { format: PARTS_FORMAT, name, size: index.size, tocDigest: index.tocDigest, parts };
    const written = await finish(head, begun.layout, media, options);
    await rm(begunPath(identity), { force: true });
    const made = parts.length - kept;
    report({ type: 'step-done', id: name, outcome: `${made} ${made === 1 ? 'part' : 'parts'} written` });
    return { head, media: written, kept };
  } catch (error) {
    check?.abandon();
    // Damage is found where a payload ends, which may begin many parts before: none of them is one to go on from.
    if (check !== undefined && isDamage(error)) await rm(begunPath(identity), { force: true });
    report({ type: 'step-failed', id: name, error: asError(error) });
    throw signal.aborted ? error : fileError(`split ${name}`, error);
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof CurlewError && (error.code === 'DIGEST_MISMATCH' || error.code === 'PACKAGE_INVALID');
}

/** Finds out where each part goes, and what is there of it; changes nothing but what `force` gives up. */
async function prepare(identity: SetIdentity, media: readonly Medium[], force: boolean): Promise<BegunSet> {
  const { name, size, tocDigest, limit, folders } = identity;
  const begun = await readBegun(identity);
  const older = force ? await readOlderHeads(identity) : [];
  const digests = new Map(begun?.digests);
  for (const head of older) {
    if (head.tocDigest !== tocDigest || head.size !== size) continue;
    for (const part of head.parts) digests.set(part.name, part.digest);
  }
  for (const folder of folders) await sweepPartials(folder);
  const stale = older.flatMap(({ parts }) => parts.map((part) => part.name));
  const rooms = await withOwn(media, [...digests.keys(), ...stale]);
  const layout = planParts({ name, size }, { media: rooms, limit: limit === 0 ? undefined : limit });
  const kept = begun === undefined ? layout : begun.layout;
  // Head files beside a set that is not finished are its own: they are written last.
  const heads = begun === undefined ? folders.map((folder) => join(folder, partsPath.head(name))) : [];
  await refuseStrange([...heads, ...kept.filter((part) => !digests.has(part.name)).map(pathOf)], force);
  const wanted = new Set(kept.map(pathOf));
  for (const folder of force ? folders : []) {
    await rm(join(folder, partsPath.head(name)), { force: true });
    for (const old of new Set(stale)) {
      if (!wanted.has(join(folder, old))) await rm(join(folder, old), { force: true });
    }
  }
  return { layout: kept, digests };
}

/** The media with the room that our own parts take there already. */
async function withOwn(media: readonly Medium[], names: readonly string[]): Promise<readonly Medium[]> {
  return Promise.all(
    media.map(async (medium) => {
      const sizes = await Promise.all([...new Set(names)].map((name) => sizeThere(join(medium.folder, name))));
      const own = sizes.reduce<number>((sum, size = 0) => sum + Math.ceil(size / medium.block) * medium.block, 0);
      return { ...medium, free: medium.free + own };
    }),
  );
}

function pathOf({ folder, name }: PlannedPart): string {
  return join(folder, name);
}

async function refuseStrange(paths: readonly string[], force: boolean): Promise<void> {
  for (const path of paths) {
    if ((await sizeThere(path)) === undefined || force) continue;
    throw new CurlewError('FILE_EXISTS', `write ${path}: the file is there already`, {
      hint: 'name another file or folder, or replace it with --force',
    });
  }
}

async function writeAll(
  identity: SetIdentity,
  { layout, digests: known }: BegunSet,
  work: Work,
): Promise<{ readonly parts: readonly Part[]; readonly kept: number }> {
  const digests = new Map(known);
  const parts: Part[] = [];
  let kept = 0;
  for (const planned of layout) {
    const { name, size } = planned;
    let digest = digests.get(name);
    if (digest !== undefined && (await isThere(planned, digest, work))) {
      kept += 1;
    } else {
      digest = await writePart(planned, work, async (made) => {
        digests.set(name, made);
        await keepBegun(identity, { layout, digests });
      });
    }
    parts.push({ name, size, digest });
    work.report({ type: 'step-progress', id: work.whole.name, bytes: planned.offset + size });
  }
  return { parts, kept };
}

async function isThere({ folder, name, offset, size }: PlannedPart, digest: Digest, work: Work): Promise<boolean> {
  const path = join(folder, name);
  if ((await sizeThere(path)) !== size || !(await isLeft(path))) return false;
  let done = offset;
  const onChunk = (chunk: Uint8Array): void => {
    done += chunk.byteLength;
    work.report({ type: 'step-progress', id: work.whole.name, bytes: done });
  };
  if ((await hashFile(path, { ...work, onChunk })).digest !== digest) return false;
  if (work.check !== undefined) await hashFile(path, { ...work, onChunk: work.check.push });
  return true;
}

/** What another user has put in the place of a part is written anew. */
async function isLeft(path: string): Promise<boolean> {
  const file = await openLeft(path, 'read').catch(() => undefined);
  await file?.close();
  return file !== undefined;
}

/** `keep` is told the digest before the part gets its name: a part with a name is always known. */
async function writePart(
  { folder, name, offset, size }: PlannedPart,
  { whole, check, report, signal }: Work,
  keep: (digest: Digest) => Promise<void>,
): Promise<Digest> {
  const partial = join(folder, partialName());
  const hash = createHash('sha256');
  try {
    // What stands there is given up already, and the medium may have no room for both.
    await rm(join(folder, name), { force: true });
    const file = await open(partial, 'wx', 0o644);
    try {
      const writes = createWriteQueue(async (piece, at) => writeFully(file, piece, at), { atOnce: WRITES_AT_ONCE });
      try {
        let done = offset;
        for await (const chunk of whole.source.read(offset, size, { signal, allocate: writes.allocate })) {
          hash.update(chunk);
          await check?.push(chunk);
          done += chunk.byteLength;
          await writes.push(chunk);
          report({ type: 'step-progress', id: whole.name, bytes: done });
        }
        await writes.finish();
        if (done !== offset + size) throw new Error(`${whole.source.name}: gave ${done - offset} bytes, not ${size}`);
      } finally {
        await writes.settle();
      }
      await file.sync();
    } finally {
      await file.close();
    }
    const digest: Digest = `sha256:${hash.digest('hex')}`;
    await keep(digest);
    await rename(partial, join(folder, name));
    await syncFolder(folder);
    return digest;
  } finally {
    await rm(partial, { force: true });
  }
}

async function finish(
  head: PartsHead,
  layout: readonly PlannedPart[],
  media: readonly Medium[],
  { beside = new Map<string, Uint8Array>() }: Pick<SplitOptions, 'beside'>,
): Promise<WrittenParts['media']> {
  const written = [];
  for (const medium of media) {
    const names = new Set(layout.filter(({ folder }) => folder === medium.folder).map(({ name }) => name));
    const parts = head.parts.filter(({ name }) => names.has(name));
    if (parts.length === 0) continue;
    const path = join(medium.folder, partsPath.head(head.name));
    for (const [name, data] of beside) await writeStateFile(join(medium.folder, name), data, 0o644);
    await writeStateFile(join(medium.folder, partsPath.sums(head.name)), formatSums(parts), 0o644);
    await writeStateFile(path, formatHead(head), 0o644);
    written.push({ medium, path, parts });
  }
  return written;
}

/** FAT keeps a file's size in 32 bits. Rounded down to whole MiB, which every medium likes better. */
const FAT_FILE_LIMIT = 2 ** 32 - 2 ** 20;
const FAT_TYPES: readonly string[] = ['vfat', 'msdos', 'umsdos'];

/** Looks at folders that must be there already: a medium that is not mounted must not become a folder of the disk. */
export async function lookAtMedia(
  folders: readonly string[],
  { proc = '/proc', signal }: { readonly proc?: string; readonly signal: AbortSignal },
): Promise<readonly Medium[]> {
  const mounts = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const media: Medium[] = [];
  for (const folder of folders) {
    signal.throwIfAborted();
    try {
      const { device, type } = mountOf(await realpath(folder), mounts) ?? { device: folder, type: '' };
      const { bavail, bsize } = await statfs(folder);
      const fileLimit = FAT_TYPES.includes(type) ? FAT_FILE_LIMIT : undefined;
      media.push({ folder, device, type, free: bavail * bsize, block: bsize, fileLimit });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw fileError(`look at ${folder}`, error);
      throw new CurlewError('NOT_FOUND', `look at ${folder}: no such folder`, {
        hint: 'mount the medium first, or name a folder that is there',
        cause: error,
      });
    }
  }
  return media;
}
