/** Checks local paths of a Manifest. */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { isWithin } from '../platform/files/is-within.ts';

/**
 * `FILE_UNUSABLE` for a path in the repository that leads outside through a symbolic link: readers of the Manifest cannot see
 * which file of the build machine would be packed. Paths outside the repository may be named directly. Missing files are
 * reported by the reader of the file. `repository` is the folder that contains `addons/`.
 */
export async function requireWithin(path: string, repository: string, doing: string): Promise<void> {
  if (!isWithin(resolve(repository), resolve(path))) return;
  try {
    if (isWithin(await realpath(repository), await realpath(path))) return;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return;
    throw fileError(doing, error);
  }
  throw new CurlewError(
    'FILE_UNUSABLE',
    `cannot ${doing}: ${path} leads outside the repository through a symbolic link`,
    {
      hint: 'replace it with a copy of the file, or name the file itself in the Manifest',
    },
  );
}
