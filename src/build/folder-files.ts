/** The files of a folder on disk as files of a package. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { safePath } from '../core/layout.ts';
import { compareText } from '../core/ref.ts';
import { measureFile } from './assets.ts';
import type { ContentFile } from './compile.ts';

/**
 * All files in `folder`, with `prefix/` before their paths, sorted by path. Modes become 0755 or 0644. Throws for a link, a
 * device, or a path that a package cannot contain.
 */
export async function filesOfFolder(
  folder: string,
  prefix: string,
  { doing, signal }: { readonly doing: string; readonly signal: AbortSignal },
): Promise<readonly ContentFile[]> {
  const paths = await listFiles(folder, doing);
  return mapLimited(
    paths,
    async (path, within): Promise<ContentFile> => {
      const at = join(folder, path);
      const { size, digest } = await measureFile(at, doing, within);
      const executable = ((await stat(at)).mode & 0o100) !== 0;
      const mode = executable ? 0o755 : 0o644;
      return { path: safePath(`${prefix}/${path}`, doing), mode, size, digest, content: { kind: 'path', path: at } };
    },
    { width: 2, signal },
  );
}

async function listFiles(folder: string, doing: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const below = (entry: (typeof entries)[number]): string =>
      join(entry.parentPath, entry.name).slice(folder.length + 1);
    const odd = entries.find((entry) => !entry.isFile() && !entry.isDirectory());
    if (odd !== undefined)
      throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${below(odd)} is neither file nor folder`);
    return entries
      .filter((entry) => entry.isFile())
      .map(below)
      .toSorted(compareText);
  } catch (error) {
    throw fileError(doing, error);
  }
}
