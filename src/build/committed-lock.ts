/** The `Manifest.lock` committed next to a Manifest: read before a build, written on request. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { formatLock, LOCK_LIMIT, parseLock, type ManifestLock } from '../manifest/lock.ts';

/** How a build uses the committed lock: report differences, refuse them, or write it again. */
export type LockMode = 'compare' | 'require' | 'update';

/** The lock of an add-on's folder; undefined if it does not exist. `LOCK_MISMATCH` if it cannot be read. */
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
        hint: 'write it again with curlew build --update-lock',
        cause: error.cause,
      });
    }
    throw fileError(`read ${path}`, error);
  }
}

/** Writes the lock atomically unless it is unchanged. True if the file was written. */
export async function writeCommittedLock(folder: string, lock: ManifestLock): Promise<boolean> {
  const path = join(folder, MANIFEST_LOCK);
  const text = formatLock(lock);
  if ((await readFile(path, 'utf8').catch(() => '')) === text) return false;
  // Not in the folder itself: a partial file of a killed build would become a file of the package.
  await writeStateFile(path, text, 0o644, dirname(folder));
  return true;
}
