/**
 * Names of files that are being written, and the removal of those that a killed process has left. A name identifies the
 * process that writes the file, which is never removed while that process runs.
 */
import { randomBytes } from 'node:crypto';
import { lstat, open, readdir, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { isOwnerRunning, ownerText, parseOwner } from './owner.ts';

const NAME = /^\.curlew-partial-(.+)-[0-9a-f]{8}$/;

/** Minimum age of a file whose writer is not visible here (another machine or container, or before a reboot). */
const MIN_AGE_MS = 24 * 60 * 60 * 1000;

/** A unique file name. */
export function partialName(): string {
  return `.curlew-partial-${ownerText()}-${randomBytes(4).toString('hex')}`;
}

/**
 * Removes the partial files in a folder whose process has ended. If the process is not visible here, the file is removed
 * after a day without changes. Files that cannot be read or removed stay: this is cleanup, and never fails. Folders with
 * such names are kept unless `folders` is set, for callers that create them.
 */
export async function sweepPartials(
  folder: string,
  { now = Date.now(), folders = false }: { readonly now?: number; readonly folders?: boolean } = {},
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const owner = parseOwner(NAME.exec(name)?.[1] ?? '');
    if (owner === undefined) continue;
    const running = isOwnerRunning(owner);
    const path = join(folder, name);
    if (running === false || (running === undefined && (await isOld(path, now, folders)))) {
      await rm(path, { recursive: folders }).catch(() => undefined);
    }
  }
}

/** Uses the change time: writing, linking and renaming update it, and no program can set it. */
async function isOld(path: string, now: number, folders: boolean): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  const counts = stats?.isFile() === true || (folders && stats?.isDirectory() === true);
  return stats !== undefined && counts && now - stats.ctimeMs > MIN_AGE_MS;
}

/**
 * Creates a file that appears only when it is complete: written under a random name in `folder`, synced, then named by `name`.
 * If anything fails, nothing of it is left. Throws what the calls throw; errors of the system as they are.
 */
export async function writeAside<Result>(
  folder: string,
  mode: number,
  write: (file: FileHandle) => Promise<void>,
  name: (partial: string) => Promise<Result>,
): Promise<Result> {
  await sweepPartials(folder);
  const partial = join(folder, partialName());
  try {
    const file = await open(partial, 'wx+', mode);
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    return await name(partial);
  } finally {
    await rm(partial, { force: true }).catch(() => undefined);
  }
}
