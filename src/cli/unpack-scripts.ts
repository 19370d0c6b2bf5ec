/** Unpacks the scripts in an executable to a private folder, for bash. */
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileError } from '../core/errors.ts';

const PREFIX = 'curlew-scripts-';
/** Age after which the folder of a killed process is removed, unless a running hook uses it. */
const STALE_MS = 86_400_000;

/** Writes texts by path; returns the folder, which is removed when this process exits. */
export function unpackScripts(texts: Readonly<Record<string, string>>): string {
  const place = tmpdir();
  try {
    sweep(place);
    const folder = mkdtempSync(join(place, PREFIX));
    process.on('exit', () => {
      rmSync(folder, { recursive: true, force: true });
    });
    for (const [path, text] of Object.entries(texts)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text, { mode: 0o755 });
    }
    return folder;
  } catch (error) {
    throw fileError(`unpack scripts to ${place}`, error);
  }
}

/** Removes folders of killed processes of this user. Ignores failures. */
function sweep(place: string): void {
  const old = Date.now() - STALE_MS;
  for (const name of readdirSync(place)) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(place, name);
    try {
      const found = lstatSync(folder);
      if (!found.isDirectory() || found.uid !== process.getuid?.() || found.mtimeMs > old || isUsed(folder)) continue;
      rmSync(folder, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}

/** True if a running process has a path in the folder as argument, as bash has for every hook. */
function isUsed(folder: string): boolean {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      if (readFileSync(join('/proc', pid, 'cmdline'), 'utf8').includes(folder)) return true;
    } catch {
      // The process has ended.
    }
  }
  return false;
}
