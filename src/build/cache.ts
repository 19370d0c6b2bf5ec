/** The cache folder: its layout and expiry. It contains no packages and may be removed at any time. */
import { lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf, isDigest, type Digest } from '../core/digest.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import type { LayerMemory } from '../formats/oci/check-layers.ts';
import { partialName, sweepPartials } from '../platform/files/partial.ts';
import { isStranger } from '../platform/files/state-file.ts';
import type { PartialPaths } from '../ship/transfer/partial-file.ts';
import { makeMissing } from '../platform/files/make-folder.ts';

const DAY_MS = 86_400_000;
/** Files that no build has read or written for this long are removed. */
const KEPT_MS = 30 * DAY_MS;
/** Names of files in the cache: the folder may also contain other files. */
const ASSET_FILE = /^\.?[0-9a-f]{64}\./;
/** Temporary folders of builds by versions whose names for them have no owner. */
const SCRATCH = /-[A-Za-z0-9]{6}$/;

/** Stores assets until their package is laid out. */
export function assetFolder(cache: string): string {
  return join(cache, 'assets');
}

function scratchFolder(cache: string): string {
  return join(cache, 'unfinished');
}

/** The files of one address, named by its digest because addresses may contain secrets. */
export function cachePaths(folder: string, source: string): PartialPaths & { readonly sourceNote: string } {
  const base = join(folder, hexOf(digestOf(source)));
  return { file: `${base}.body`, partial: `${base}.partial`, note: `${base}.begun`, sourceNote: `${base}.json` };
}

/** What layers unpack to, by digest: unpacking one again shows the same. Without a private cache, nothing is kept. */
export function layerMemory(cache: string): LayerMemory {
  const folder = assetFolder(cache);
  const path = (blob: Digest): string => join(folder, `${hexOf(blob)}.layer`);
  return {
    find: async (blob) => {
      const text = (await isOwn(folder)) ? await readFile(path(blob), 'utf8').catch(() => '') : '';
      return isDigest(text) ? text : undefined;
    },
    keep: async (blob, unpacked) => {
      // A build must not fail because it cannot keep what only saves time.
      await makeOwn(folder)
        .then(async () => writeFile(path(blob), unpacked))
        .catch(() => undefined);
    },
  };
}

/**
 * Creates a folder of the cache. `FILE_UNUSABLE` for a link in its place, and for a folder that belongs to another user or
 * that everyone may write to: files there could be redirected or belong to others.
 */
export async function makeOwn(folder: string): Promise<void> {
  await makeMissing(folder, 0o755);
  if (await isOwn(folder)) return;
  throw new CurlewError(
    'FILE_UNUSABLE',
    `cannot use ${folder} for unfinished downloads: it is not a private folder of this user`,
    { hint: 'use another folder with --cache' },
  );
}

async function isOwn(folder: string): Promise<boolean> {
  const stats = await lstat(folder).catch(() => undefined);
  return stats?.isDirectory() === true && !isStranger(stats.uid) && (stats.mode & 0o002) === 0;
}

/** A new temporary folder for a build, after a sweep of those that killed builds have left; the caller removes it. */
export async function makeScratch(cache: string): Promise<string> {
  const folder = scratchFolder(cache);
  try {
    await makeOwn(folder);
    await sweepPartials(folder, { folders: true });
    const path = join(folder, partialName());
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch (error) {
    throw fileError(`create a folder in ${folder}`, error);
  }
}

/**
 * True if unfinished files are worth keeping because the next run resumes them: after a network failure, or a failure of
 * another add-on. If it was canceled or the disk is full, a build leaves nothing.
 */
export function isWorthKeeping(error: unknown, signal: AbortSignal): boolean {
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (!(cause instanceof CurlewError)) return false;
  if (signal.aborted) return cause.code !== 'CANCELLED' && cause.code !== 'NO_SPACE';
  return cause.code === 'FETCH_FAILED' || cause.code === 'AUTH_FAILED';
}

/** Removes files that no build has used for 30 days. `now` in milliseconds. Never fails. */
export async function pruneCache(cache: string, now: number): Promise<void> {
  await Promise.all([
    pruneFolder(assetFolder(cache), ASSET_FILE, now - KEPT_MS),
    pruneFolder(scratchFolder(cache), SCRATCH, now - KEPT_MS),
  ]);
}

async function pruneFolder(folder: string, ours: RegExp, before: number): Promise<void> {
  // A finished build must not fail because its cache cannot be pruned.
  const names = (await isOwn(folder)) ? await readdir(folder).catch(() => []) : [];
  for (const name of names.filter((one) => ours.test(one))) {
    const path = join(folder, name);
    try {
      if ((await lstat(path)).mtimeMs < before) await rm(path, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}
