/** Compares paths by name alone. */
import { isAbsolute, relative } from 'node:path';

/** True for the folder itself and everything in it. Both are absolute; links are not followed. */
export function isWithin(folder: string, path: string): boolean {
  const below = relative(folder, path);
  return below !== '..' && !below.startsWith('../') && !isAbsolute(below);
}
