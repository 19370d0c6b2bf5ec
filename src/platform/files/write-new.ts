/** Creates files that must not exist yet. */
import { open, rm } from 'node:fs/promises';
import { atPath } from '../../core/errors.ts';

/**
 * Writes and syncs a new file, and removes it again on failure. Throws system errors unchanged: `EEXIST` if the path already
 * exists.
 */
export async function writeNew(path: string, text: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    try {
      await file.writeFile(text).catch(atPath(path));
      await file.sync().catch(atPath(path));
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true }).catch(() => undefined);
    throw error;
  }
}
