/** The `Manifest.lock` that is committed beside a Manifest: read before a build, written when its maker asks for it. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { formatLock, LOCK_LIMIT, parseLock, type ManifestLock } from '../manifest/lock.ts';

/** What a build does with the committed lock: look whether it differs, refuse to differ, or write it anew. */
export type LockMode = 'compare' | 'require' | 'update';

/** The lock of an add-on's folder; undefined when there is none. One that cannot be read is `LOCK_MISMATCH`. */
export async function readCommittedLock(folder: string): Promise<ManifestLock | undefined> {
  const path = join(folder, MANIFEST_LOCK);
  try {
    if ((await stat(path)).size > LOCK_LIMIT)
      throw new CurlewError('FILE_UNUSABLE', `${path} is larger than ${LOCK_LIMIT} bytes`);
    return parseLock(await readFile(path, 'utf8'), folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'UNSUPPORTED'].includes(error.code)) {
      throw new CurlewError('LOCK_MISMATCH', error.message, {
        hint: 'curlew build --update-lock writes it anew',
        cause: error.cause,
      });
    }
    throw fileError(`read ${path}`, error);
  }
}

/** Puts the lock to its place, whole, unless it says the same already. True when the file was written. */
export async function writeCommittedLock(folder: string, lock: ManifestLock): Promise<boolean> {
  const path = join(folder, MANIFEST_LOCK);
  const text = formatLock(lock);
  if ((await readFile(path, 'utf8').catch(() => '')) === text) return false;
  // Not in the folder itself: what a killed build left there would be a file of the package.
  await writeStateFile(path, text, 0o644, dirname(folder));
  return true;
}
