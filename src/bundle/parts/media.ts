/** Folders that parts are to be written to: how much room there is, and how large a file may be. */
import { readFile, realpath, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, CurlewError, fileError } from '../../core/errors.ts';
import { mountOf, parseMounts } from '../../platform/files/mounts.ts';
import type { Medium } from './split-plan.ts';

/** FAT keeps a file's size in 32 bits. Rounded down to whole MiB, which every medium likes better. */
const FAT_FILE_LIMIT = 2 ** 32 - 2 ** 20;
const FAT_TYPES: readonly string[] = ['vfat', 'msdos', 'umsdos'];

/** Looks at folders that must be there already: a medium that is not mounted must not become a folder of the disk. */
export async function lookAtMedia(
  folders: readonly string[],
  { proc = '/proc', signal }: { readonly proc?: string; readonly signal: AbortSignal },
): Promise<readonly Medium[]> {
  const mounts = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const media: Medium[] = [];
  for (const folder of folders) {
    signal.throwIfAborted();
    try {
      const { device, type } = mountOf(await realpath(folder), mounts) ?? { device: folder, type: '' };
      const { bavail, bsize } = await statfs(folder);
      const fileLimit = FAT_TYPES.includes(type) ? FAT_FILE_LIMIT : undefined;
      media.push({ folder, device, type, free: bavail * bsize, block: bsize, fileLimit });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw fileError(`look at ${folder}`, error);
      throw new CurlewError('NOT_FOUND', `look at ${folder}: no such folder`, {
        hint: 'mount the medium first, or name a folder that is there',
        cause: error,
      });
    }
  }
  return media;
}
