/** The install folder of a use case. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { Context } from '../core/context.ts';
import type { FolderRequest } from '../requests/node.ts';

/** Absolute path; does not access it. */
export function folderOf(request: FolderRequest, { cwd }: Pick<Context, 'cwd'>): string {
  const folder = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  const root = request.root;
  return root === undefined ? folder : join(resolve(cwd, root), folder);
}

/**
 * {@link folderOf}, for what was installed there before. `NOT_FOUND` if `root` is not the folder of a trial: a mistyped path would look
 * like a node on which nothing is installed.
 */
export async function installedFolder(request: FolderRequest, context: Pick<Context, 'cwd'>): Promise<string> {
  const directory = folderOf(request, context);
  if (request.root === undefined) return directory;
  const root = resolve(context.cwd, request.root);
  const [outer, inner] = [await kindOf(root), await kindOf(directory)];
  if (inner === 'folder' || inner === 'unknown') return directory;
  const why =
    outer === 'folder' ? `it has no ${directory}` : outer === 'file' ? 'it is not a folder' : 'no such folder';
  throw new CurlewError('NOT_FOUND', `there is no trial in ${root}: ${why}`, {
    hint: 'check the path; curlew install creates a trial',
  });
}

/** `FILE_UNUSABLE` if a trial cannot be created in `root` because a file is there. */
export async function requireTrialFolder({ root }: FolderRequest, { cwd }: Pick<Context, 'cwd'>): Promise<void> {
  if (root === undefined || (await kindOf(resolve(cwd, root))) !== 'file') return;
  throw new CurlewError('FILE_UNUSABLE', `cannot create a trial in ${resolve(cwd, root)}: it is not a folder`, {
    hint: 'specify with --root a folder, or a path at which nothing exists yet',
  });
}

/** `unknown` if this user may not see it: a read says so. */
async function kindOf(path: string): Promise<'folder' | 'file' | 'nothing' | 'unknown'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return 'nothing';
    if (errno === 'EACCES' || errno === 'EPERM') return 'unknown';
    throw fileError(`read ${path}`, error);
  }
}
