/** Whether a disk has room, before the first byte is written to it. */
import { statfs } from 'node:fs/promises';
import { CurlewError } from '../../core/errors.ts';

const HINT = 'free some space, or name another folder, and run the same command again';

/** `NO_SPACE` when `size` more bytes do not fit onto the disk of a folder; `doing` opens the message. */
export async function requireSpace(folder: string, size: number, doing: string, hint = HINT): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize >= size) return;
  throw new CurlewError('NO_SPACE', `${doing}: ${size} bytes are needed, ${bavail * bsize} are free`, { hint });
}
