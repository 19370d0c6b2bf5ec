/** The package of an earlier build: what it says of itself, and files out of it. */
import { createWriteStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
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

export interface FinishedPackage {
  readonly path: string;
  readonly index: ArchiveIndex;
  readonly addon: AddonJson;
  readonly lock: ManifestLock;
}

/** Most bytes of `addon.json` and of the lock that are read. */
const DOCUMENT_LIMIT = 32 << 20;

/** The package of this reference in a folder; undefined when there is none, or none that can be read. */
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

/** What makes an existing package somebody else's, in a few words; undefined for none, and for one of this user's or of root's. */
export async function whyForeign(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? undefined : strangeness(found);
}

/**
 * Unpacks, verified, the files of a finished package below `folder` (such as `rhel-8/archives`) into `to`, by their paths
 * below it. Returns how many there were.
 */
export async function unpackFolder(
  { path, index, addon }: FinishedPackage,
  { folder, to, wanted }: { readonly folder: string; readonly to: string; readonly wanted: (path: string) => boolean },
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const prefix = `${prefixOf(refOf(addon))}${folder}/`;
  const entries = index.entries.filter((entry) => entry.path.startsWith(prefix));
  const chosen = entries.filter((entry) => wanted(entry.path.slice(prefix.length)));
  if (chosen.length === 0) return 0;
  await using source = await openFileSource(path);
  for (const { path: name, mode } of chosen) {
    const entry = findEntry(index, name);
    if (entry === undefined) continue;
    const target = join(to, safePath(name.slice(prefix.length), path));
    try {
      await mkdir(dirname(target), { recursive: true });
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
