/** Queries about this machine that the hooks' bash library answers, so that curlew and hooks agree. Changes nothing. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import type { RunRequest } from '../prepare/request.ts';

/** A package manager that waits for another one's lock must not block a run forever. */
const LIMIT_MS = 120_000;

export interface LibraryOptions extends Pick<RunRequest, 'scripts' | 'env'> {
  readonly signal: AbortSignal;
}

/** The non-empty lines that bash code prints when it is run with `args`. `doing` starts the error messages. */
export async function runLibrary(
  code: string,
  args: readonly string[],
  doing: string,
  { scripts, env: { PATH, CURLEW_OS_RELEASE }, signal }: LibraryOptions,
): Promise<readonly string[]> {
  const script = `for file in "$0"/*.sh; do source "$file"; done; ${code}`;
  return tryProgram(
    'bash',
    ['--noprofile', '--norc', '-c', script, join(scripts, 'lib'), ...args],
    { env: { PATH, CURLEW_OS_RELEASE, LC_ALL: 'C' }, limitMs: LIMIT_MS, signal },
    ({ status, stdout, stderr, error }) => {
      if (error === undefined) return stdout.split('\n').filter((line) => line !== '');
      if (error.problem === 'late') {
        throw new CurlewError('PROGRAM_FAILED', `cannot ${doing}: no response for ${LIMIT_MS / 1000} s`, {
          hint: 'check whether another program is installing packages, and wait until it finishes',
          cause: error,
        });
      }
      const ended = status === undefined ? `bash: ${error.reason}` : `bash ended with status ${status}`;
      throw new CurlewError('PROGRAM_FAILED', `cannot ${doing}: ${stderr.trim() === '' ? ended : stderr.trim()}`);
    },
  );
}
