/** Questions about this machine that the library of hooks answers, so that both say the same. Nothing is changed. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { runProgram } from '../../platform/process/run-program.ts';
import type { RunRequest } from '../run/request.ts';

/** A package manager that waits for another one's lock must not hold up a run for ever. */
const LIMIT_MS = 120_000;

export interface LibraryOptions extends Pick<RunRequest, 'scripts' | 'env'> {
  readonly signal: AbortSignal;
}

/** The lines that this bash code, which gets `words`, prints; empty ones are left out. `doing` is for messages. */
export async function askLibrary(
  code: string,
  words: readonly string[],
  doing: string,
  { scripts, env: { PATH, CURLEW_OS_RELEASE }, signal }: LibraryOptions,
): Promise<readonly string[]> {
  const ask = `for file in "$0"/*.sh; do source "$file"; done; ${code}`;
  const { status, stdout, stderr, error } = await runProgram(
    'bash',
    ['--noprofile', '--norc', '-c', ask, join(scripts, 'lib'), ...words],
    { env: { PATH, CURLEW_OS_RELEASE, LC_ALL: 'C' }, limitMs: LIMIT_MS, signal },
  );
  if (error === undefined) return stdout.split('\n').filter((line) => line !== '');
  if (error.problem === 'late') {
    throw new CurlewError('PROGRAM_FAILED', `${doing}: no answer for ${LIMIT_MS / 1000} s`, {
      hint: 'see whether another program is installing packages, and wait for it to end',
      cause: error,
    });
  }
  const ended = status === undefined ? `bash: ${error.reason}` : `bash ended with status ${status}`;
  throw new CurlewError('PROGRAM_FAILED', `${doing}: ${stderr.trim() === '' ? ended : stderr.trim()}`);
}
