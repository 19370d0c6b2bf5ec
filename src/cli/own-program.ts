/** Facts about this process that use cases need. */
import { dirname } from 'node:path';
import type { Context } from '../core/context.ts';
import { ownScripts } from '../own/scripts.ts';

/** The location of its scripts is determined only on use: an executable unpacks them. */
export function ownProcess(): Required<Pick<Context, 'user' | 'program'>> {
  const { execPath, execArgv, argv } = process;
  const [, script] = argv;
  return {
    user: process.geteuid?.(),
    program: () => {
      if (process.getBuiltinModule('node:sea').isSea())
        return { command: [execPath], files: [execPath], executable: execPath };
      const files = [execPath, dirname(ownScripts()), ...(script === undefined ? [] : [script])];
      return { command: script === undefined ? [execPath] : [execPath, ...execArgv, script], files };
    },
  };
}
