/** Temporary folders outside of curlew's own folders. A killed process leaves them; the next call removes them. */
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { isOwnerRunning, ownerText, parseOwner } from './owner.ts';

const NAME =
  /^\.?curlew-(generate|helm|kubeconfig|preflight|scripts|ssh)-(?:([0-9a-f]{12}-\d{1,10}-\d{1,20})-)?[0-9A-Za-z]{6}$/;
/** Minimum age of a folder whose process is not visible here, as in another container. */
const MIN_AGE_MS = 86_400_000;

/** Creates a private folder, after a sweep of `parent`. The caller removes it. */
export function makeTemporary(
  kind: 'generate' | 'helm' | 'kubeconfig' | 'preflight' | 'scripts' | 'ssh',
  { parent = tmpdir(), hidden = false }: { readonly parent?: string; readonly hidden?: boolean } = {},
): string {
  sweepTemporary(parent);
  return mkdtempSync(join(parent, `${hidden ? '.' : ''}curlew-${kind}-${ownerText()}-`));
}

/** Removes folders of this user whose process has ended, unless a hook that survived it still uses them. Never fails. */
export function sweepTemporary(parent: string): void {
  for (const name of namesIn(parent)) {
    const match = NAME.exec(name);
    if (match === null) continue;
    const folder = join(parent, name);
    try {
      if (isLeft(folder, match) && !(match[1] === 'scripts' && isUsed(folder)))
        rmSync(folder, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}

function namesIn(parent: string): readonly string[] {
  try {
    return readdirSync(parent);
  } catch {
    return [];
  }
}

function isLeft(folder: string, [, , text = '']: readonly (string | undefined)[]): boolean {
  const stats = lstatSync(folder);
  if (!stats.isDirectory() || stats.uid !== process.getuid?.()) return false;
  const owner = parseOwner(text);
  const running = owner === undefined ? undefined : isOwnerRunning(owner);
  if (running !== undefined) return !running;
  // No process survives a reboot.
  const age = Date.now() - stats.mtimeMs;
  return age > Math.min(MIN_AGE_MS, uptime() * 1000);
}

/** True if a running process has a path in the folder as argument, as bash has for every hook. */
function isUsed(folder: string): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(join('/proc', pid, 'cmdline'), 'utf8').includes(folder);
    } catch {
      // The process has ended.
      return false;
    }
  });
}
