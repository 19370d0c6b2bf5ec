/** How hooks call this program: `BIN_CURLEW` holds the words before its arguments, quoted for a shell. */
import { isSea } from 'node:sea';
import { dirname } from 'node:path';
import { shellQuote } from '../runtime/hooks/settings.ts';
import type { CommandContext } from './command.ts';

/** What {@link withOwnProgram} leads to: files, and the folder of a program that is not one file. `scripts`: its scripts. */
export function ownProgramPaths(scripts: string): readonly string[] {
  return isSea() ? [process.execPath] : [process.execPath, dirname(scripts), ...process.argv.slice(1, 2)];
}

/** The environment of hooks that may call this program. */
export function withOwnProgram(env: CommandContext['env']): CommandContext['env'] {
  const { execPath, execArgv, argv } = process;
  const [, script] = argv;
  const words = isSea() || script === undefined ? [execPath] : [execPath, ...execArgv, script];
  return { ...env, BIN_CURLEW: words.map(shellQuote).join(' ') };
}
