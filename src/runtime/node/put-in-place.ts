/** Moves a package into its folder on the node: it is staged completely, synced, then renamed. */
import { lstat, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileError, succeeds } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import type { AddonRef } from '../../core/ref.ts';
import { dropPlacedRecord, movePlacedRecord } from './placed-record.ts';
import type { SourcePackage } from './source.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const STAGING = /^\.(?:new|old)-/;

/** Removes folders that interrupted runs left between unpacking and renaming. */
export async function clearStaging(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (STAGING.test(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

/** Folders that {@link clearStaging} would remove; none if the install folder does not exist. */
export async function stagingOf(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => STAGING.test(name)).map((name) => join(directory, name));
}

/** Unpacks into `.new-<run>`, which no hook uses. */
export async function stagePackage(
  source: SourcePackage,
  { directory, run, signal }: { readonly directory: string; readonly run: string; readonly signal: AbortSignal },
): Promise<void> {
  const staged = join(directory, `.new-${run}`, nodePath.addon(source.ref));
  try {
    await rm(staged, { recursive: true, force: true });
    await makeMissing(dirname(staged), 0o755);
    await source.extract(staged, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw fileError(`extract ${source.ref.name}`, error);
  }
}

/** Renames the staged package into place. The former one is removed or, with `keep`, moved to `previous`. */
export async function renameIntoPlace(
  ref: AddonRef,
  { directory, run, keep }: { readonly directory: string; readonly run: string; readonly keep: boolean },
): Promise<void> {
  const path = nodePath.addon(ref);
  const target = join(directory, path);
  const old = keep ? join(directory, nodePath.previous(ref)) : join(directory, `.old-${run}`, path);
  try {
    await makeMissing(dirname(target), 0o755);
    await makeMissing(dirname(old), 0o755);
    if (await isThere(target)) {
      await rm(old, { recursive: true, force: true });
      await rename(target, old);
      if (keep) await movePlacedRecord(directory, path, nodePath.previous(ref));
    }
    await rename(join(directory, `.new-${run}`, path), target);
    for (const folder of [dirname(target), dirname(dirname(target))]) await syncFolder(folder);
    if (keep) await syncFolder(dirname(old));
    await syncFolder(directory);
    if (!keep) await rm(old, { recursive: true, force: true });
  } catch (error) {
    throw fileError(`move ${path} into place`, error);
  }
}

async function isThere(path: string): Promise<boolean> {
  return succeeds(['ENOENT'], lstat(path));
}

/** Removes the folder of a package atomically: renames it; {@link clearStaging} deletes its files. */
export async function moveAside(
  ref: AddonRef,
  { directory, run }: { readonly directory: string; readonly run: string },
): Promise<void> {
  const path = nodePath.addon(ref);
  const [target, old] = [join(directory, path), join(directory, `.old-${run}`, path)];
  try {
    // Before the folder: a run that dies in between must not leave the record behind.
    await dropPlacedRecord(directory, path);
    if (!(await isThere(target))) return;
    await makeMissing(dirname(old), 0o755);
    await rename(target, old);
    await syncFolder(dirname(target));
  } catch (error) {
    throw fileError(`remove ${path}`, error);
  }
}

/** Removes the kept package of an add-on when no rollback needs it. */
export async function dropPrevious(directory: string, ref: AddonRef): Promise<void> {
  const folder = dirname(nodePath.previous(ref));
  await rm(join(directory, folder), { recursive: true, force: true });
  await dropPlacedRecord(directory, nodePath.previous(ref));
  for (const above of [dirname(folder), dirname(dirname(folder))]) {
    // Not empty if other add-ons have kept packages.
    await rmdir(join(directory, above)).catch(() => undefined);
  }
}
