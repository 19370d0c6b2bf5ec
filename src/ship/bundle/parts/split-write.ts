/** Writes a file in parts. Each part is synced before the next begins. The file itself may be generated meanwhile. */
import { createHash } from 'node:crypto';
import { readFile, realpath, rm, statfs, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { countBytes } from '../../../core/events.ts';
import type { Reporting } from '../../../core/cancellable.ts';
import type { ArchiveIndex, RangeSource } from '../../../formats/archive/entry.ts';
import type { Digest } from '../../../core/digest.ts';
import { counted } from '../../../core/counted.ts';
import { asError, canceledOr, CurlewError, errnoOf, fileError, NOTHING_WRITTEN } from '../../../core/errors.ts';
import { formatHead, formatSums, type Part, PARTS_FORMAT, type PartsHead, partsPath } from '../../../core/parts.ts';
import { hashFile } from '../../../platform/files/hash-file.ts';
import { openLeft } from '../../../platform/files/left-file.ts';
import { nameFile } from '../../../platform/files/name-file.ts';
import { sweepPartials, writeAside } from '../../../platform/files/partial.ts';
import { writeStateFile } from '../../../platform/files/state-file.ts';
import { writeFully } from '../../../platform/files/write-fully.ts';
import { createEntryCheck, type EntryCheck, type EntryNaming } from '../write/entry-check.ts';
import {
  progressPath,
  type SetProgress,
  saveProgress,
  readProgress,
  readOlderHeads,
  type SetIdentity,
  sizeOfFile,
} from './parts-known.ts';
import { type Medium, type PlannedPart, planParts } from './split-plan.ts';
import { writeChunks } from '../write/write-queue.ts';
import { mountOf, parseMounts } from '../../../platform/files/mounts.ts';

/** What is left of a canceled set of which a part is complete. */
const PARTS_STAY = 'parts that are complete stay: the same command continues with the others';

/** The archive to split: an existing or a planned one. */
export interface Whole {
  /** File name, from which the names of parts are derived. */
  readonly name: string;
  readonly source: RangeSource;
  readonly index: ArchiveIndex;
  /** Names the archives from which a planned one is copied, for messages; default: its own name. */
  readonly nameOf?: EntryNaming | undefined;
}

export interface SplitOptions extends Reporting {
  /** Target folders, in this order; all must exist. */
  readonly folders: readonly string[];
  /** Maximum bytes of a part; the file system may have a lower limit. */
  readonly limit: number | undefined;
  /** Content of small files to write next to each head file, by name. */
  readonly extraFiles?: ReadonlyMap<string, Uint8Array>;
  /** Replace existing parts; otherwise they are `FILE_EXISTS`. */
  readonly force: boolean;
  /** File mode of the parts; default 0644. */
  readonly mode?: number | undefined;
  /** Verify every byte while writing; see {@link createEntryCheck}. */
  readonly verify: boolean;
  readonly proc?: string;
  /** Called with the layout before the first part is written. */
  readonly onLayout?: (layout: readonly PlannedPart[]) => void;
}

export interface WrittenParts {
  readonly head: PartsHead;
  /** Media in the order of the folders; only those with parts. */
  readonly media: readonly {
    readonly medium: Medium;
    /** Path of the head file on the medium. */
    readonly path: string;
    readonly parts: readonly Part[];
  }[];
  /** Number of existing parts with the right digest. */
  readonly kept: number;
}

interface SplitJob extends Pick<SplitOptions, 'mode' | 'report' | 'signal'> {
  readonly whole: Whole;
  readonly check: EntryCheck | undefined;
}

/**
 * Writes the parts, and in each folder the head file of all parts and the checksums of the folder's own. Head files appear only
 * when every part is on disk. The next call for the same file resumes an interrupted one: existing parts with the right digest
 * are kept, unless the source turned out to be damaged. Insufficient space is reported before anything is written (`NO_SPACE`).
 */
export async function writeParts(whole: Whole, options: SplitOptions): Promise<WrittenParts> {
  const { name, index } = whole;
  const { force, mode, report, signal } = options;
  const identity = identityOf(whole, options);
  const media = await inspectMedia(options.folders, options);
  const { stale, ...progress } = await findLayout(identity, media, force);
  await removeStale(identity, { ...progress, stale, force });
  options.onLayout?.(progress.layout);
  const check = options.verify ? createEntryCheck(index, whole.nameOf ?? (() => name), { signal }) : undefined;
  const work: SplitJob = { whole, check, mode, report, signal };
  report({ type: 'step-started', id: name, title: name, bytes: index.size });
  try {
    const { parts, kept } = await writeAll(identity, progress, work);
    await check?.finish();
    const head: PartsHead = { format: PARTS_FORMAT, name, size: index.size, tocDigest: index.tocDigest, parts };
    const written = await finish(head, progress.layout, media, options);
    await rm(progressPath(identity), { force: true });
    const newParts = parts.length - kept;
    report({ type: 'step-done', id: name, outcome: `${counted(newParts, 'part')} written` });
    return { head, media: written, kept };
  } catch (error) {
    check?.abandon();
    // Damage is detected at the end of a payload, which may begin many parts earlier, so no part can be kept.
    if (check !== undefined && isDamage(error)) await rm(progressPath(identity), { force: true });
    report({ type: 'step-failed', id: name, error: asError(error) });
    if (!signal.aborted) throw fileError(`write the parts of ${name}`, error);
    const saved = await readProgress(identity).catch(() => undefined);
    throw canceledOr(error, signal, saved === undefined ? NOTHING_WRITTEN : PARTS_STAY);
  }
}

function identityOf(
  { name, index: { size, tocDigest } }: Pick<Whole, 'name' | 'index'>,
  { folders, limit = 0 }: Pick<SplitOptions, 'folders' | 'limit'>,
): SetIdentity {
  return { name, size, tocDigest, limit, folders };
}

/** The head files and parts that {@link writeParts} would write; only media with parts. */
export async function layoutOf(
  whole: Pick<Whole, 'name' | 'index'>,
  options: Pick<SplitOptions, 'folders' | 'limit' | 'force' | 'proc' | 'signal'>,
): Promise<readonly { readonly head: string; readonly parts: readonly Omit<Part, 'digest'>[] }[]> {
  const media = await inspectMedia(options.folders, options);
  const { layout } = await findLayout(identityOf(whole, options), media, options.force);
  return options.folders.flatMap((folder) => {
    const parts = layout.filter((part) => part.folder === folder).map(({ name, size }) => ({ name, size }));
    return parts.length === 0 ? [] : [{ head: join(folder, partsPath.head(whole.name)), parts }];
  });
}

function isDamage(error: unknown): boolean {
  return error instanceof CurlewError && (error.code === 'DIGEST_MISMATCH' || error.code === 'PACKAGE_INVALID');
}

interface FoundLayout extends SetProgress {
  /** Names of parts of older sets, which `force` replaces. */
  readonly stale: readonly string[];
}

/** Plans the layout and finds existing parts; changes nothing. */
async function findLayout(identity: SetIdentity, media: readonly Medium[], force: boolean): Promise<FoundLayout> {
  const { name, size, tocDigest, limit, folders } = identity;
  const resumed = await readProgress(identity);
  const older = force ? await readOlderHeads(identity) : [];
  const digests = new Map(resumed?.digests);
  for (const head of older) {
    if (head.tocDigest !== tocDigest || head.size !== size) continue;
    for (const part of head.parts) digests.set(part.name, part.digest);
  }
  const stale = older.flatMap(({ parts }) => parts.map((part) => part.name));
  const rooms = await withOwn(media, [...digests.keys(), ...stale]);
  const layout = planParts({ name, size }, { media: rooms, limit: limit === 0 ? undefined : limit });
  const chosen = resumed === undefined ? layout : resumed.layout;
  // Head files of an unfinished set are its own, since they are written last.
  const heads = resumed === undefined ? folders.map((folder) => join(folder, partsPath.head(name))) : [];
  await refuseExistingFiles([...heads, ...chosen.filter((part) => !digests.has(part.name)).map(pathOf)], force);
  return { layout: chosen, digests, stale };
}

/** Removes unfinished files, and with `force` older sets. */
async function removeStale(
  { name, folders }: SetIdentity,
  { layout, stale, force }: FoundLayout & { readonly force: boolean },
): Promise<void> {
  const needed = new Set(layout.map(pathOf));
  for (const folder of folders) await sweepPartials(folder);
  for (const folder of force ? folders : []) {
    await rm(join(folder, partsPath.head(name)), { force: true });
    for (const old of new Set(stale)) {
      if (!needed.has(join(folder, old))) await rm(join(folder, old), { force: true });
    }
  }
}

/** The media, with the space of existing parts of this set counted as free. */
async function withOwn(media: readonly Medium[], names: readonly string[]): Promise<readonly Medium[]> {
  return Promise.all(
    media.map(async (medium) => {
      const sizes = await Promise.all([...new Set(names)].map((name) => sizeOfFile(join(medium.folder, name))));
      const own = sizes.reduce<number>((sum, size = 0) => sum + Math.ceil(size / medium.block) * medium.block, 0);
      return { ...medium, free: medium.free + own };
    }),
  );
}

function pathOf({ folder, name }: PlannedPart): string {
  return join(folder, name);
}

async function refuseExistingFiles(paths: readonly string[], force: boolean): Promise<void> {
  for (const path of paths) {
    if ((await sizeOfFile(path)) === undefined || force) continue;
    throw new CurlewError('FILE_EXISTS', `cannot write ${path}: the file already exists`, {
      hint: 'use another file or folder, or replace it with --force',
    });
  }
}

async function writeAll(
  identity: SetIdentity,
  { layout, digests: known }: SetProgress,
  work: SplitJob,
): Promise<{ readonly parts: readonly Part[]; readonly kept: number }> {
  const digests = new Map(known);
  const parts: Part[] = [];
  let kept = 0;
  for (const planned of layout) {
    const { name, size } = planned;
    let digest = digests.get(name);
    if (digest !== undefined && (await isWritten(planned, digest, work))) {
      kept += 1;
    } else {
      digest = await writePart(planned, work, async (computed) => {
        digests.set(name, computed);
        await saveProgress(identity, { layout, digests });
      });
    }
    parts.push({ name, size, digest });
    work.report({ type: 'step-progress', id: work.whole.name, bytes: planned.offset + size });
  }
  return { parts, kept };
}

async function isWritten(
  { folder, name, offset, size }: PlannedPart,
  digest: Digest,
  work: SplitJob,
): Promise<boolean> {
  const path = join(folder, name);
  if ((await sizeOfFile(path)) !== size || !(await isOwnFile(path))) return false;
  const onBytes = countBytes(work.report, work.whole.name, { first: offset });
  const onChunk = ({ byteLength }: Uint8Array): void => onBytes(byteLength);
  if ((await hashFile(path, { ...work, onChunk })).digest !== digest) return false;
  if (work.check !== undefined) await hashFile(path, { ...work, onChunk: work.check.push });
  return true;
}

/** False for a file of another user, which is then written again. */
async function isOwnFile(path: string): Promise<boolean> {
  const file = await openLeft(path, 'read').catch(() => undefined);
  await file?.close();
  return file !== undefined;
}

/** Calls `save` with the digest before the part gets its name, so that every named part has a known digest. */
async function writePart(
  { folder, name, offset, size }: PlannedPart,
  { whole, check, mode = 0o644, report, signal }: SplitJob,
  save: (digest: Digest) => Promise<void>,
): Promise<Digest> {
  const hash = createHash('sha256');
  const path = join(folder, name);
  // The existing file is unusable, and the medium may have no space for both.
  await rm(path, { force: true });
  const write = async (file: FileHandle): Promise<void> => {
    const done = await writeChunks(
      (allocate) => whole.source.read(offset, size, { signal, allocate }),
      async (piece, at) => writeFully(file, piece, at),
      {
        check: async (chunk) => {
          hash.update(chunk);
          await check?.push(chunk);
        },
        onBytes: countBytes(report, whole.name, { first: offset }),
      },
    );
    if (done !== size) throw new Error(`${whole.source.name}: returned ${done} bytes instead of ${size}`);
  };
  try {
    return await writeAside(folder, mode, write, async (partial) => {
      const digest: Digest = `sha256:${hash.digest('hex')}`;
      await save(digest);
      await nameFile(partial, path, true);
      return digest;
    });
  } catch (error) {
    throw errnoOf(error) === undefined ? error : fileError(`write ${path}`, error);
  }
}

async function finish(
  head: PartsHead,
  layout: readonly PlannedPart[],
  media: readonly Medium[],
  { extraFiles = new Map<string, Uint8Array>() }: Pick<SplitOptions, 'extraFiles'>,
): Promise<WrittenParts['media']> {
  const written = [];
  for (const medium of media) {
    const names = new Set(layout.filter(({ folder }) => folder === medium.folder).map(({ name }) => name));
    const parts = head.parts.filter(({ name }) => names.has(name));
    if (parts.length === 0) continue;
    const path = join(medium.folder, partsPath.head(head.name));
    for (const [name, data] of extraFiles) await writeStateFile(join(medium.folder, name), data, 0o644);
    await writeStateFile(join(medium.folder, partsPath.sums(head.name)), formatSums(parts), 0o644);
    await writeStateFile(path, formatHead(head), 0o644);
    written.push({ medium, path, parts });
  }
  return written;
}

/** FAT stores file sizes in 32 bits. Rounded down to whole MiB for alignment. */
const FAT_FILE_LIMIT = 2 ** 32 - 2 ** 20;
const FAT_TYPES: readonly string[] = ['vfat', 'msdos', 'umsdos'];

/** Inspects target folders. They must exist, so that an unmounted medium does not become a folder on the disk. */
export async function inspectMedia(
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
      if (errnoOf(error) !== 'ENOENT') throw fileError(`inspect ${folder}`, error);
      throw new CurlewError('NOT_FOUND', `cannot write parts to ${folder}: no such folder`, {
        hint: 'create it, or mount the medium that it is on',
        cause: error,
      });
    }
  }
  return media;
}
