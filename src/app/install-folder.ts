/** The install folder that a use case looks at. */
import { join, resolve } from 'node:path';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { Context } from './context.ts';

export interface FolderRequest {
  /** Install folder; the usual one when absent. */
  readonly installDir?: string | undefined;
  /** The folder that a trial was given. */
  readonly root?: string | undefined;
}

/** Absolute path; nothing is looked at. */
export function folderOf(request: FolderRequest, { cwd }: Pick<Context, 'cwd'>): string {
  const folder = resolve(cwd, request.installDir ?? INSTALL_DIRECTORY);
  const root = request.root;
  return root === undefined ? folder : join(resolve(cwd, root), folder);
}
