/** Commands that run as an unprivileged user. */
import { dirname, join } from 'node:path';
import { ROOT } from './programs.ts';

/** The user's id, which is also that of its group. */
export const OTHER_USER = 65534;

/** Programs that {@link asOtherUser} needs. */
export const USER_PROGRAMS = ['mount', 'setpriv', 'unshare'] as const;

/**
 * The words that run a command as an unprivileged user. It reaches this checkout and Node even in a home that is closed to other
 * users. Only root can run them.
 */
export function asOtherUser(...command: readonly string[]): readonly [string, ...string[]] {
  // A test may have put another bash into the search path.
  const reachable = [
    '/bin/bash',
    join(ROOT, 'test/components/support/reachable'),
    ROOT,
    dirname(process.execPath),
    '--',
  ];
  const user = [`--reuid=${OTHER_USER}`, `--regid=${OTHER_USER}`, '--clear-groups'];
  return ['unshare', '--mount', '--propagation', 'private', ...reachable, 'setpriv', ...user, ...command];
}
