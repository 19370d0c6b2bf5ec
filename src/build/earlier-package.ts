/** The package of an earlier build: its metadata, and its files. */
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ArchiveIndex } from '../formats/archive/entry.ts';
import { findEntry, openFileSource, readFile, readIndex, readPayload } from '../formats/archive/read.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { ADDON_JSON, MANIFEST_LOCK, packageFileName, prefixOf, safePath } from '../core/layout.ts';
import { strangeness } from '../platform/files/state-file.ts';
import { parseAddonJson, refOf, type AddonJson } from '../core/package.ts';
import type { AddonRef, Arch } from '../core/ref.ts';
import { parseLock, type ManifestLock } from '../manifest/lock.ts';
import { makeMissing } from '../platform/files/make-folder.ts';

export interface FinishedPackage {
  readonly path: string;
  readonly index: ArchiveIndex;
  readonly addon: AddonJson;
  readonly lock: ManifestLock;
}

/** Size limit of `addon.json` and of the lock, in bytes. */
const DOCUMENT_LIMIT = 32 << 20;

/** The package of this reference in a folder; undefined if it is missing or cannot be read. */
export async function finishedPackage(
  out: string,
  ref: AddonRef,
  arch: Arch,
  { signal }: { readonly signal: AbortSignal },
): Promise<FinishedPackage | undefined> {
  const path = join(out, packageFileName(ref, arch));
  try {
    await using source = await openFileSource(path);
    const index = await readIndex(source, { signal });
    const prefix = prefixOf(ref);
    const document = async (name: string): Promise<string | undefined> => {
      const entry = findEntry(index, prefix + name);
      if (entry === undefined) return undefined;
      return Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
    };
    const [addon, lock] = [await document(ADDON_JSON), await document(MANIFEST_LOCK)];
    if (addon === undefined || lock === undefined) return undefined;
    return { path, index, addon: parseAddonJson(addon, path), lock: parseLock(lock, path) };
  } catch (error) {
    if (error instanceof CurlewError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

/** Why an existing package is not trusted; undefined if it does not exist or belongs only to this user or root. */
export async function whyForeign(path: string): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? undefined : strangeness(stats);
}

/**
 * Unpacks and verifies the files of a finished package in `folder` (such as `rhel-8/archives`) into `to`, by their relative
 * paths. Returns the number of files.
 */
export async function unpackFolder(
  { path, index, addon }: FinishedPackage,
  { folder, to, select }: { readonly folder: string; readonly to: string; readonly select: (path: string) => boolean },
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const prefix = `${prefixOf(refOf(addon))}${folder}/`;
  const entries = index.entries.filter((entry) => entry.path.startsWith(prefix));
  const chosen = entries.filter((entry) => select(entry.path.slice(prefix.length)));
  if (chosen.length === 0) return 0;
  await using source = await openFileSource(path);
  for (const { path: name, mode } of chosen) {
    const entry = findEntry(index, name);
    if (entry === undefined) continue;
    const target = join(to, safePath(name.slice(prefix.length), path));
    try {
      await makeMissing(dirname(target));
      await pipeline(readPayload(source, entry, { signal }), createWriteStream(target, { mode, flags: 'wx' }), {
        signal,
      });
    } catch (error) {
      if (error instanceof CurlewError || signal.aborted) throw error;
      throw fileError(`write ${target}`, error);
    }
  }
  return chosen.length;
}
