/** Reads and writes files that are arguments of kURL's programs. */
import { writeFile } from 'node:fs/promises';
import { fileError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';

const SIZE_LIMIT = 32 << 20;

export async function readText(path: string): Promise<string> {
  return (await readLimited(path, SIZE_LIMIT)).toString('utf8');
}

/** `mode` applies to new files. */
export async function writeNewText(path: string, text: string, mode = 0o666): Promise<void> {
  try {
    await writeFile(path, text, { mode });
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
}
