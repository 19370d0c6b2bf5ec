/** The cache folder: what lies where, and when it goes. Packages are not in it; all of it may be removed at any time. */
import { lstat, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../core/digest.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { isStranger } from '../platform/files/state-file.ts';
import type { PartialPaths } from '../transfer/partial-file.ts';

const DAY_MS = 86_400_000;
/** What no build has read or written for so long is taken away. */
const KEPT_MS = 30 * DAY_MS;
/** Names that are made here: the folder may be shared with others' files. */
const ASSET_FILE = /^\.?[0-9a-f]{64}\./;
const SCRATCH = /-[A-Za-z0-9]{6}$/;

/** Where assets wait until their package is laid out. */
export function assetFolder(cache: string): string {
  return join(cache, 'assets');
}

function scratchFolder(cache: string): string {
  return join(cache, 'unfinished');
}

/** The files of one address, named by its digest, since addresses may contain secrets. */
export function pathsOf(folder: string, source: string): PartialPaths & { readonly sourceNote: string } {
  const base = join(folder, hexOf(digestOf(source)));
  return { file: `${base}.body`, partial: `${base}.partial`, note: `${base}.begun`, sourceNote: `${base}.json` };
}

/**
 * Makes a folder of the cache that is not there yet. A link in its place, or a folder of another user's or that all may write
 * to, is `FILE_UNUSABLE`: what is written there, and removed when it is old, would be elsewhere, or another's.
 */
export async function makeOwn(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  if (await isOwn(folder)) return;
  throw new CurlewError(
    'FILE_UNUSABLE',
    `use ${folder} for unfinished downloads: it is not a folder of this user alone`,
    {
      hint: 'name another folder with --cache',
    },
  );
}

async function isOwn(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined);
  return found?.isDirectory() === true && !isStranger(found.uid) && (found.mode & 0o002) === 0;
}

/** A new folder for what one build of the add-on `id` keeps on disk; whoever asks for it removes it. */
export async function makeScratch(cache: string, id: string): Promise<string> {
  const folder = scratchFolder(cache);
  try {
    await makeOwn(folder);
    return await mkdtemp(join(folder, `${id}-`));
  } catch (error) {
    throw fileError(`make a folder in ${folder}`, error);
  }
}

/**
 * True when what is unfinished is worth keeping, because the next run goes on there: after a failure of the network, or
 * of another add-on. Cancelled, or with a full disk, a build leaves nothing.
 */
export function isWorthKeeping(error: unknown, signal: AbortSignal): boolean {
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (!(cause instanceof CurlewError)) return false;
  if (signal.aborted) return cause.code !== 'CANCELLED' && cause.code !== 'NO_SPACE';
  return cause.code === 'FETCH_FAILED' || cause.code === 'AUTH_FAILED';
}

/** Takes away what 30 days went by without a build that used it. `now` in milliseconds. Never fails. */
export async function pruneCache(cache: string, now: number): Promise<void> {
  await Promise.all([
    pruneFolder(assetFolder(cache), ASSET_FILE, now - KEPT_MS),
    pruneFolder(scratchFolder(cache), SCRATCH, now - KEPT_MS),
  ]);
}

async function pruneFolder(folder: string, ours: RegExp, before: number): Promise<void> {
  // A cache that cannot be cleaned is no reason to call a finished build failed.
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
