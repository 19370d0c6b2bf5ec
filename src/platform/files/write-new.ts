/** Creates files that must not exist yet. */
import { open, rm } from 'node:fs/promises';

/**
 * Writes and syncs a new file, and removes it again on failure. Throws system errors unchanged: `EEXIST` if the path already
 * exists.
 */
export async function writeNew(path: string, text: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true }).catch(() => undefined);
    throw error;
  }
}
