/**
 * Names of files that are being written, and the removal of those that a killed process has left. A name says whose the
 * file is: it is never removed while that process runs.
 */
import { randomBytes } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isThere, ownOwner } from './owner.ts';

const NAME = /^\.curlew-partial-([0-9a-f]{12})-(\d{1,10})-(\d{1,20})-[0-9a-f]{8}$/;

/** A file whose writer cannot be seen (another machine, another container, before a reboot) rests this long first. */
const REST_MS = 24 * 60 * 60 * 1000;

/** A file name that nobody else uses. */
export function partialName(): string {
  const { place, pid, start } = ownOwner();
  return `.curlew-partial-${place}-${pid}-${start}-${randomBytes(4).toString('hex')}`;
}

/**
 * Removes the partial files in a folder whose process is gone. One whose process cannot be seen is removed when nothing
 * has been done to it for a day. What cannot be looked at or removed stays: this is housekeeping, and never fails.
 * Folders of such names are left alone, unless `folders` says that whoever asks makes them.
 */
export async function sweepPartials(
  folder: string,
  { now = Date.now(), folders = false }: { readonly now?: number; readonly folders?: boolean } = {},
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const [, place, pid, start] = NAME.exec(name) ?? [];
    if (place === undefined || pid === undefined || start === undefined) continue;
    const there = isThere({ place, pid: Number(pid), start });
    const path = join(folder, name);
    if (there === false || (there === undefined && (await hasRested(path, now, folders)))) {
      await rm(path, { recursive: folders }).catch(() => undefined);
    }
  }
}

/** The time of change: writing, linking and renaming move it, and nobody can set it. */
async function hasRested(path: string, now: number, folders: boolean): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  const counts = found?.isFile() === true || (folders && found?.isDirectory() === true);
  return found !== undefined && counts && now - found.ctimeMs > REST_MS;
}
