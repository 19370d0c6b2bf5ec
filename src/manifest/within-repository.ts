/** Keeps the files that a Manifest names within its repository, the folder that contains `addons/`. */
import { realpathSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { CurlewError, fileError, isMissing } from '../core/errors.ts';
import { isWithin } from '../platform/files/is-within.ts';

/** How an existing or missing path leaves the repository, by its name or through a symbolic link; undefined if it does not. */
export function outsideProblem(path: string, repository: string): string | undefined {
  if (!isWithin(resolve(repository), resolve(path))) return `is outside the repository ${resolve(repository)}`;
  try {
    if (isWithin(realpathSync(repository), realpathSync(path))) return undefined;
  } catch (error) {
    // Readers of the file report it.
    if (isMissing(error)) return undefined;
    throw fileError(`read ${path}`, error);
  }
  return 'leads outside the repository through a symbolic link';
}

/** A file next to a Manifest in `root`, absolute. `FILE_UNUSABLE` if it is outside the repository, unless that is allowed. */
export function localFile(
  source: string,
  { root, doing, outsideFiles }: { readonly root: string; readonly doing: string; readonly outsideFiles: boolean },
): string {
  const path = isAbsolute(source) ? source : join(root, source);
  if (!outsideFiles) requireWithin(path, join(root, '../../..'), doing);
  return path;
}

/** `FILE_UNUSABLE` for a path outside the repository: a change to a Manifest must not pack any file of the build machine. */
export function requireWithin(path: string, repository: string, doing: string): void {
  const problem = outsideProblem(path, repository);
  if (problem === undefined) return;
  throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${path} ${problem}`, {
    hint: 'copy the file into the repository; or, if you trust the Manifest, build with --allow-outside-files',
  });
}
