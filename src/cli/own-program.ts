/** What use cases are told of this process. */
import { isSea } from 'node:sea';
import { dirname } from 'node:path';
import type { Context } from '../app/context.ts';
import { ownScripts } from '../app/own-scripts.ts';

/** Where its scripts are is found out only when it is asked for: an executable unpacks them. */
export function ownProcess(): Required<Pick<Context, 'user' | 'ownProgram'>> {
  const { execPath, execArgv, argv } = process;
  const [, script] = argv;
  return {
    user: process.geteuid?.(),
    ownProgram: () => {
      if (isSea()) return { words: [execPath], files: [execPath] };
      const files = [execPath, dirname(ownScripts()), ...(script === undefined ? [] : [script])];
      return { words: script === undefined ? [execPath] : [execPath, ...execArgv, script], files };
    },
  };
}
