/** A new name survives a crash only after its folder is flushed to disk. */
import { open } from 'node:fs/promises';
import { atPath } from '../../core/errors.ts';

/** Flushes a folder's own entries to disk. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync().catch(atPath(path));
}
