/** From a package to its folder on the node: beside it first, complete and on disk, then renamed. */
import { lstat, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf, fileError } from '../core/errors.ts';
import type { Digest } from '../core/digest.ts';
import { ADDON_JSON, nodePath, OMITTED_JSON } from '../core/layout.ts';
import { OMITTED_JSON_LIMIT, parseOmitted } from '../core/omitted.ts';
import { ADDON_JSON_LIMIT, parseAddonJson, type PackageFile } from '../core/package.ts';
import type { AddonRef } from '../core/ref.ts';
import type { SourcePackage } from './source.ts';
import { syncFolder } from '../files/sync-folder.ts';
import { readStateFile } from '../files/state-file.ts';

const STAGING = /^\.(?:new|old)-/;

/** Removes what interrupted runs left between unpacking and renaming. */
export async function clearStaging(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (STAGING.test(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

/** Folders that interrupted runs left and that {@link clearStaging} removes; an install folder that is not there has none. */
export async function stagingOf(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => STAGING.test(name)).map((name) => join(directory, name));
}

/** Unpacks into `.new-<run>`; nothing that a hook sees changes. */
export async function stagePackage(
  source: SourcePackage,
  { directory, run, signal }: { readonly directory: string; readonly run: string; readonly signal: AbortSignal },
): Promise<void> {
  const staged = join(directory, `.new-${run}`, nodePath.addon(source.ref));
  try {
    await rm(staged, { recursive: true, force: true });
    await mkdir(dirname(staged), { recursive: true });
    await source.extract(staged, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw fileError(`extract ${source.ref.name}`, error);
  }
}

/** Renames what was staged to its place; what lay there goes away, or is put by. */
export async function renameIntoPlace(
  ref: AddonRef,
  { directory, run, keep }: { readonly directory: string; readonly run: string; readonly keep: boolean },
): Promise<void> {
  const path = nodePath.addon(ref);
  const target = join(directory, path);
  const old = keep ? join(directory, nodePath.previous(ref)) : join(directory, `.old-${run}`, path);
  try {
    await mkdir(dirname(target), { recursive: true });
    await mkdir(dirname(old), { recursive: true });
    if (await isThere(target)) {
      await rm(old, { recursive: true, force: true });
      await rename(target, old);
    }
    await rename(join(directory, `.new-${run}`, path), target);
    for (const folder of [dirname(target), dirname(dirname(target))]) await syncFolder(folder);
    if (keep) await syncFolder(dirname(old));
    await syncFolder(directory);
    if (!keep) await rm(old, { recursive: true, force: true });
  } catch (error) {
    throw fileError(`put ${path} in place`, error);
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Takes the folder of a package away, all of it at once; {@link clearStaging} removes what lay in it. */
export async function takeAway(
  ref: AddonRef,
  { directory, run }: { readonly directory: string; readonly run: string },
): Promise<void> {
  const path = nodePath.addon(ref);
  const [target, old] = [join(directory, path), join(directory, `.old-${run}`, path)];
  try {
    if (!(await isThere(target))) return;
    await mkdir(dirname(old), { recursive: true });
    await rename(target, old);
    await syncFolder(dirname(target));
  } catch (error) {
    throw fileError(`take ${path} away`, error);
  }
}

/** Removes what was put by for an add-on, when nobody will go back to it any more. */
export async function dropPrevious(directory: string, ref: AddonRef): Promise<void> {
  const folder = dirname(nodePath.previous(ref));
  await rm(join(directory, folder), { recursive: true, force: true });
  for (const above of [dirname(folder), dirname(dirname(folder))]) {
    // Other add-ons may have something there.
    await rmdir(join(directory, above)).catch(() => undefined);
  }
}

/**
 * Digest of the package whose files lie in the install folder, as its addon.json says; undefined when there is none that can
 * be read, or files are missing. Those that a bundle left out do not count, unless `wanted` has them. What the files hold
 * is not read, and hooks may have added to them.
 */
export async function digestInPlace(
  directory: string,
  ref: AddonRef,
  wanted?: Pick<SourcePackage, 'omitted'>,
): Promise<Digest | undefined> {
  const folder = join(directory, nodePath.addon(ref));
  try {
    const text = await readStateFile(join(folder, ADDON_JSON), ADDON_JSON_LIMIT);
    if (text === undefined) return undefined;
    const { digest, unpacked } = parseAddonJson(text, folder);
    const note = await readStateFile(join(folder, OMITTED_JSON), OMITTED_JSON_LIMIT);
    const omitted = note === undefined ? undefined : parseOmitted(note, folder);
    if (wanted !== undefined && omitted?.folders.every((one) => wanted.omitted.includes(one)) === false)
      return undefined;
    const files = await filesBelow(folder);
    const bytes = files.reduce((sum, { path, size }) => (NOTES.includes(path) ? sum : sum + size), 0);
    return bytes < unpacked.files + unpacked.images - (omitted?.bytes ?? 0) ? undefined : digest;
  } catch {
    return undefined;
  }
}

/** What says of a package what it is, and is not counted as part of it. */
const NOTES: readonly string[] = [ADDON_JSON, OMITTED_JSON];

export async function filesBelow(folder: string): Promise<readonly Omit<PackageFile, 'digest'>[]> {
  const files: Omit<PackageFile, 'digest'>[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode, size } = await stat(path);
    files.push({ path: path.slice(folder.length + 1), mode: (mode & 0o100) === 0 ? 0o644 : 0o755, size });
  }
  return files;
}
