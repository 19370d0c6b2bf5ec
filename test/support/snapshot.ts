/** What must stay as it is: everything below a folder. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Names, modes, sizes, times and inodes of everything below a folder, and of the folder. */
export async function snapshot(folder: string): Promise<readonly string[]> {
  const names = ['', ...(await readdir(folder, { recursive: true }))];
  const rows = names.toSorted().map(async (name) => {
    const { mode, size, mtimeMs, ctimeMs, ino } = await lstat(join(folder, name));
    return `${name} ${mode} ${size} ${mtimeMs} ${ctimeMs} ${ino}`;
  });
  return Promise.all(rows);
}
