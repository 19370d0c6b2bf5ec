/** The install folder of a use case. */
import { join, resolve } from 'node:path';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { Context } from '../core/context.ts';
import type { FolderRequest } from '../requests/node.ts';

/** Absolute path; does not access it. */
export function folderOf(request: FolderRequest, { cwd }: Pick<Context, 'cwd'>): string {
  const folder = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  const root = request.root;
  return root === undefined ? folder : join(resolve(cwd, root), folder);
}
