/** Questions about this machine that the library of hooks answers, so that both say the same. Nothing is changed. */
import { CurlewError } from '../../core/errors.ts';
import { runProgram } from '../preflight/program.ts';
import { join } from 'node:path';
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
  const limit = AbortSignal.timeout(LIMIT_MS);
  const ask = `for file in "$0"/*.sh; do source "$file"; done; ${code}`;
  try {
    const host = { env: { PATH, CURLEW_OS_RELEASE, LC_ALL: 'C' }, signal: AbortSignal.any([signal, limit]) };
    const args = ['--noprofile', '--norc', '-c', ask, join(scripts, 'lib'), ...words];
    const { status, stdout, stderr } = await runProgram('bash', args, host);
    if (status === 0) return stdout.split('\n').filter((line) => line !== '');
    throw new CurlewError(
      'PROGRAM_FAILED',
      `${doing}: ${stderr.trim() === '' ? `bash ended with status ${status}` : stderr.trim()}`,
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError) throw error;
    const late = limit.aborted ? `: no answer for ${LIMIT_MS / 1000} s` : '';
    throw new CurlewError('PROGRAM_FAILED', `${doing}${late}`, {
      hint: 'see whether another program is installing packages, and wait for it to end',
      cause: error,
    });
  }
}
