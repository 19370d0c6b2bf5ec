/** The install folder of a use case. */
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import type { Context } from '../../core/context.ts';
import { isWithin } from '../../platform/files/is-within.ts';
import type { FolderRequest } from '../../requests/node.ts';

/** Absolute path; does not access it. */
export function folderOf(request: FolderRequest, { cwd }: Pick<Context, 'cwd'>): string {
  const folder = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  const root = request.root;
  return root === undefined ? folder : join(resolve(cwd, root), folder);
}

/**
 * {@link folderOf}, for what was installed there before. `NOT_FOUND` if `root` is not the folder of a trial: a mistyped path would look
 * like a node on which nothing is installed. Throws what {@link requireFolders} throws.
 */
export async function installedFolder(request: FolderRequest, context: Pick<Context, 'cwd'>): Promise<string> {
  await requireFolders(request, context);
  const directory = folderOf(request, context);
  if (request.root === undefined || (await kindOf(directory)) !== 'nothing') return directory;
  const root = resolve(context.cwd, request.root);
  const why = (await kindOf(root)) === 'folder' ? `it has no ${directory}` : 'no such folder';
  throw new CurlewError('NOT_FOUND', `there is no trial in ${root}: ${why}`, {
    hint: 'check the path; curlew install creates a trial',
  });
}

/** `FILE_UNUSABLE` if the install folder or the folder of the trial, or a folder above them, is a file. Neither needs to exist. */
export async function requireFolders(request: FolderRequest, context: Pick<Context, 'cwd'>): Promise<void> {
  const directory = folderOf(request, context);
  const file = await fileAbove(directory);
  if (file === undefined) return;
  const root = request.root === undefined ? undefined : resolve(context.cwd, request.root);
  const isRoot = root !== undefined && isWithin(file, root);
  const [path, what] = isRoot ? [root, 'the folder of a trial'] : [directory, 'the install folder'];
  const why = file === path ? 'it is not a folder' : `${file} is not a folder`;
  throw new CurlewError('FILE_UNUSABLE', `cannot use ${path} as ${what}: ${why}`, {
    hint: `specify with ${isRoot ? '--root' : '--install-dir'} a folder, or a path at which nothing exists yet`,
  });
}

/** The path itself or the last part of it that exists, if that is a file. */
async function fileAbove(path: string): Promise<string | undefined> {
  const kind = await kindOf(path);
  if (kind === 'nothing') return fileAbove(dirname(path));
  return kind === 'file' ? path : undefined;
}

/** `unknown` if this user may not see it: a read says so. */
export async function kindOf(path: string): Promise<'folder' | 'file' | 'nothing' | 'unknown'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return 'nothing';
    if (errno === 'EACCES' || errno === 'EPERM') return 'unknown';
    throw fileError(`read ${path}`, error);
  }
}
