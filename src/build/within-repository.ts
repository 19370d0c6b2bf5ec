/** Files that a Manifest names by their path. */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { isWithin } from '../platform/files/is-within.ts';

/**
 * `FILE_UNUSABLE` for a path in the repository that leads out of it by a symbolic link: nobody who reads the Manifest sees which
 * file of the building machine would go into the package. What is outside can be named as it is. A path that leads nowhere is
 * for whoever reads it. `repository` is the folder that holds `addons/`.
 */
export async function requireWithin(path: string, repository: string, doing: string): Promise<void> {
  if (!isWithin(resolve(repository), resolve(path))) return;
  try {
    if (isWithin(await realpath(repository), await realpath(path))) return;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return;
    throw fileError(doing, error);
  }
  throw new CurlewError('FILE_UNUSABLE', `${doing}: ${path} leads out of the repository by a symbolic link`, {
    hint: 'put a copy of the file in its place, or name the file itself in the Manifest',
  });
}
