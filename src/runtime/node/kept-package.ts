/** Packages that are on the node: in place, or kept in `previous` after another package of the same version replaced them. */
import { constants, copyFile, lstat, open, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, fileError, requireRefusal } from '../../core/errors.ts';
import type { Digest } from '../../core/digest.ts';
import { countBytes, reportStep, type Report } from '../../core/events.ts';
import { ADDON_JSON, nodePath, OMITTED_JSON } from '../../core/layout.ts';
import { OMITTED_JSON_LIMIT } from '../../core/omitted.ts';
import { ADDON_JSON_LIMIT, type PackageFile } from '../../core/package.ts';
import { formatRef, type AddonRef } from '../../core/ref.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { areExposed, compareFiles, UNREPORTED } from './placed-files.ts';
import { readPlacedRecord, type PlacedRecord } from './placed-record.ts';
import { checkedAddon, type SourcePackage } from './source.ts';
import { readOwnFile } from '../../platform/files/state-file.ts';
import { wrongBytes, readVerified } from './verified-file.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

interface LookOptions {
  /** Receives progress if reading takes more than a second. */
  readonly report?: Report | undefined;
  readonly signal: AbortSignal;
}

/**
 * The package with this digest, wherever it is below the install folder. It is verified like the packages in place or, if its
 * files are not recorded, by reading all of them. `NOT_FOUND` if it is missing, was changed, or is writable by other users.
 */
export async function keptPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  look: LookOptions,
): Promise<SourcePackage> {
  const { signal } = look;
  for (const path of [nodePath.addon(ref), nodePath.previous(ref)]) {
    const candidate = await readKept(directory, path, { ref, digest }, look).catch((error: unknown) => {
      requireRefusal(error, signal);
      return undefined;
    });
    if (candidate?.addon.digest === digest) return candidate;
  }
  throw new CurlewError('NOT_FOUND', `the package of ${formatRef(ref)} is no longer on this node or has changed`, {
    hint: 'install it from a bundle or store that has it',
  });
}

/** Verifies files again while they are read: they could have been replaced since. */
function readerOf(folder: string, files: readonly PackageFile[]): SourcePackage['read'] {
  return (path, { signal }) => {
    const file = files.find((one) => one.path === path);
    if (file === undefined)
      throw new CurlewError('NOT_FOUND', `cannot read ${join(folder, path)}: not a file of the package`);
    return readVerified([join(folder, path)], file, signal);
  };
}

async function readKept(
  directory: string,
  path: string,
  { ref, digest }: { readonly ref: AddonRef; readonly digest: Digest },
  look: LookOptions,
): Promise<SourcePackage | undefined> {
  const folder = join(directory, path);
  const addon = await readOwnFile(join(folder, ADDON_JSON), ADDON_JSON_LIMIT);
  if (addon === undefined) return undefined;
  const omitted = await readOwnFile(join(folder, OMITTED_JSON), OMITTED_JSON_LIMIT);
  const record = await readPlacedRecord(directory, path);
  // A record of another package is left over from a run that died.
  const files =
    record?.digest === digest
      ? await recordedFiles(folder, record, look.signal)
      : await filesOf(folder, formatRef(ref), look);
  if (files === undefined) return undefined;
  return {
    ref,
    ...checkedAddon({ addon, omitted }, ref, files, folder),
    files,
    read: readerOf(folder, files),
    extract: async (into, options) => copyPackage(folder, files, into, options.signal),
  };
}

async function filesBelow(folder: string): Promise<readonly Omit<PackageFile, 'digest'>[]> {
  const files: Omit<PackageFile, 'digest'>[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode, size } = await lstat(path);
    files.push({ path: path.slice(folder.length + 1), mode: (mode & 0o100) === 0 ? 0o644 : 0o755, size });
  }
  return files;
}

/** Undefined if a file differs. Files that hooks added are ignored, and large files are not read again. */
async function recordedFiles(
  folder: string,
  { files }: PlacedRecord,
  signal: AbortSignal,
): Promise<readonly PackageFile[] | undefined> {
  const known = new Map(files.map((file) => [file.path, file]));
  const { differences } = await compareFiles(folder, files, { known, thorough: false, signal });
  return differences.every(({ harmless }) => harmless) ? files : undefined;
}

/** Undefined if other users could replace one of the files. */
async function filesOf(
  folder: string,
  name: string,
  { report, signal }: LookOptions,
): Promise<readonly PackageFile[] | undefined> {
  const entries = await filesBelow(folder);
  const step = { id: folder, title: `check ${name}`, bytes: entries.reduce((sum, { size }) => sum + size, 0) };
  const hash = async (): Promise<readonly PackageFile[]> => {
    const files: PackageFile[] = [];
    const onBytes = report && countBytes(report, folder);
    for (const file of entries) {
      const { digest } = await hashFile(join(folder, file.path), { signal });
      files.push({ ...file, digest });
      onBytes?.(file.size);
    }
    return files;
  };
  const files = await (report === undefined || step.bytes < UNREPORTED
    ? hash()
    : reportStep(report, step, hash, () => 'checked'));
  return (await areExposed(folder, files, { signal })) ? undefined : files;
}

async function copyPackage(
  folder: string,
  files: readonly PackageFile[],
  into: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const folders = new Set([dirname(into), into]);
    for (const { path, mode, digest } of files) {
      signal.throwIfAborted();
      const target = join(into, path);
      await makeMissing(dirname(target), 0o755);
      folders.add(dirname(target));
      await copyFile(join(folder, path), target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      const file = await open(target, 'r');
      try {
        await file.chmod(mode);
        await file.sync();
      } finally {
        await file.close();
      }
      // Other users cannot write to the copy, but may have been able to write to its source.
      if ((await hashFile(target, { signal })).digest !== digest) throw wrongBytes(join(folder, path));
    }
    for (const one of folders) await syncFolder(one);
  } catch (error) {
    throw fileError(`copy ${folder}`, error);
  }
}
