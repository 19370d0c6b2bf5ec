/** Unpacks the scripts in an executable to a private folder, for bash. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileError } from '../core/errors.ts';
import { makeTemporary } from '../platform/files/temporary.ts';

/** Writes texts by path; returns the folder, which is removed when this process exits. */
export function unpackScripts(texts: Readonly<Record<string, string>>): string {
  try {
    const folder = makeTemporary('scripts');
    process.on('exit', () => {
      rmSync(folder, { recursive: true, force: true });
    });
    for (const [path, text] of Object.entries(texts)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text, { mode: 0o755 });
    }
    return folder;
  } catch (error) {
    throw fileError(`unpack scripts to ${tmpdir()}`, error);
  }
}
