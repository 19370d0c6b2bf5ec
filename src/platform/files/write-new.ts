/** Files that must not be there yet. */
import { open, rm } from 'node:fs/promises';

/**
 * Writes and syncs a new file; when that fails, nothing is left of it. An error of the system, `EEXIST` where something
 * is there already, is thrown as it is.
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
