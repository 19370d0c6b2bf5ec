/** How hooks call this program: `BIN_CURLEW` holds the words before its arguments, quoted for a shell. */
import { isSea } from 'node:sea';
import { shellQuote } from '../runtime/settings.ts';
import type { CommandContext } from './command.ts';

/** The environment of hooks that may call this program. */
export function withOwnProgram(env: CommandContext['env']): CommandContext['env'] {
  const { execPath, execArgv, argv } = process;
  const [, script] = argv;
  const words = isSea() || script === undefined ? [execPath] : [execPath, ...execArgv, script];
  return { ...env, BIN_CURLEW: words.map(shellQuote).join(' ') };
}
