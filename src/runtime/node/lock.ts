/** The lock of an install folder: one run at a time. */
import { join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { lockOwner, takeLock } from '../../platform/files/claim.ts';

/** Takes the lock or throws `BUSY`. Disposing it releases the lock. */
export async function lockFolder(directory: string): Promise<AsyncDisposable> {
  const path = join(directory, nodePath.lock);
  try {
    return await takeLock(path, (pid) => {
      return new CurlewError('BUSY', `cannot lock ${path}: another run is in progress (process ${pid})`, {
        hint: 'wait until it ends, or terminate it',
      });
    });
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw fileError(`lock ${directory}`, error);
    // The message does not mention the lock: it is free. Nor another folder, which would be another node.
    throw new CurlewError(
      'NO_SPACE',
      `cannot start a run in ${directory}: no space left on its disk; nothing was changed`,
      {
        hint: `free some space there (see df -h ${directory} and df -i ${directory}), then run the same command again`,
        cause: error,
      },
    );
  }
}

/** Process ID of the run in progress on a folder; undefined if there is none. Does not take the lock. */
export async function runInProgress(directory: string): Promise<number | undefined> {
  return lockOwner(join(directory, nodePath.lock));
}
