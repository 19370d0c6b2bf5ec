/** Checks free disk space before the first byte is written. */
import { statfs } from 'node:fs/promises';
import { CurlewError } from '../../core/errors.ts';
import { formatBytes } from '../../core/units.ts';

const HINT = 'free some space or use another folder, then run the same command again';

/** `NO_SPACE` if `size` more bytes do not fit on the disk of a folder; `doing` begins the message. */
export async function requireSpace(folder: string, size: number, doing: string, hint = HINT): Promise<void> {
  const { blocks, bavail, bsize } = await statfs(folder);
  // A file system without blocks, such as /proc, does not say how much fits: the write itself may fail, and says why.
  if (blocks === 0 || bavail * bsize >= size) return;
  const free = formatBytes(bavail * bsize);
  throw new CurlewError('NO_SPACE', `cannot ${doing}: ${formatBytes(size)} are needed, ${free} are free`, { hint });
}
