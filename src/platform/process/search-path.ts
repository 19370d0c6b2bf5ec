/** The folders in which programs are looked for. */
import { delimiter } from 'node:path';

/** Folders of programs for administrators, such as pivot_root, which are missing in PATH of ordinary users of Debian. */
const FOR_ADMINISTRATORS = ['/usr/sbin', '/sbin'];
const DEFAULT_PATH = '/usr/bin:/bin';

/** PATH for a program and what it starts: that of `env`, then the folders for administrators and `more`, each unless it is there. */
export function searchPath(env: Readonly<Record<string, string | undefined>>, ...more: readonly string[]): string {
  const path = env['PATH'];
  const folders = (path === undefined || path === '' ? DEFAULT_PATH : path).split(delimiter);
  return [...folders, ...[...FOR_ADMINISTRATORS, ...more].filter((one) => !folders.includes(one))].join(delimiter);
}
