/** The install folder that a command looks at. */
import { join, resolve } from 'node:path';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';

/** Of every command that looks at an install folder without installing. */
export const FOLDER_OPTIONS = {
  'install-dir': { type: 'string', value: 'DIR', help: `install folder (default: ${INSTALL_DIRECTORY})` },
  root: { type: 'string', value: 'DIR', help: 'the folder that a trial was given with --root' },
} satisfies OptionSpecs;

/** Absolute path; nothing is looked at. */
export function folderOf(args: Arguments, { cwd }: Pick<CommandContext, 'cwd'>): string {
  const folder = resolve(cwd, args.text('install-dir') ?? INSTALL_DIRECTORY);
  const root = args.text('root');
  return root === undefined ? folder : join(resolve(cwd, root), folder);
}
