/**
 * Bundles for kURL's own scripts (kurl.md 5.3): the scripts are at the root, everything that they move to the install folder
 * is in `kurl/`.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { BUNDLE_SCRIPTS, KURL_FOLDER, ownerOf, pathProblem } from '../../core/layout.ts';
import { compareText, formatRef } from '../../core/ref.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readPackageAddon, type OpenPackage } from './open-packages.ts';
import type { RootFile } from '../../own/root-files.ts';

/** Maximum total bytes, because they are kept in memory. The largest, kurl-util.tar, contains an image. */
const MAX_BYTES = 512 << 20;

/**
 * The four scripts of the folder, and all files in its `kurl/` (bin, manifests, shared and so on), by path. A missing script is
 * `NOT_FOUND`. Ignores other files in the folder.
 */
export async function readKurlScripts(folder: string): Promise<readonly RootFile[]> {
  const paths = [...BUNDLE_SCRIPTS, ...(await filesBelow(folder))];
  const files: RootFile[] = [];
  let budget = MAX_BYTES;
  for (const path of paths) {
    const problem = pathProblem(path);
    if (problem !== undefined) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot read ${folder}: the path ${JSON.stringify(path.slice(0, 200))} ${problem}`,
      );
    }
    if (/^kurl\/(?:addons|packages)\//.test(path)) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot read ${folder}: ${path}: add-ons must come from packages of the store`,
        { hint: 'remove the folders kurl/addons and kurl/packages' },
      );
    }
    const file = await readScript(join(folder, path), budget);
    budget -= file.data.byteLength;
    files.push({ path, ...file });
  }
  return files;
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  try {
    const below = join(folder, KURL_FOLDER);
    const entries = await readdir(below, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(KURL_FOLDER, entry.parentPath.slice(below.length - 1), entry.name))
      .toSorted(compareText);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw fileError(`read ${folder}`, error);
  }
}

async function readScript(path: string, limit: number): Promise<Pick<RootFile, 'mode' | 'data'>> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: not a regular file`);
    return { mode: (stats.mode & 0o111) === 0 ? 0o644 : 0o755, data: await readLimited(path, limit) };
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`read ${path}`, error);
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: no such file`, {
      hint: `--kurl-scripts requires a folder with kURL's own ${BUNDLE_SCRIPTS.join(', ')}`,
    });
  }
}

/** kURL loads single `images/*.tar.gz` files: throws `UNSUPPORTED` with all packages whose images have another format. */
export async function requireDockerArchives(packages: readonly OpenPackage[], { signal }: Cancellable): Promise<void> {
  const others: string[] = [];
  for (const one of packages) {
    const { images, imageFormat } = await readPackageAddon(one, { signal });
    if (images.length > 0 && imageFormat !== 'docker-archive') others.push(formatRef(one.resolved));
  }
  if (others.length === 0) return;
  throw new CurlewError('UNSUPPORTED', `--layout kurl: kURL's scripts cannot load the images of ${others.join(', ')}`, {
    hint: 'build and publish them with --image-format docker-archive',
  });
}

/** Moves the packages of a bundle for kURL's own scripts to their paths in other bundles. */
export function withoutKurlFolder(index: ArchiveIndex): ArchiveIndex {
  const moved = (path: string): string => {
    const below = path.startsWith(KURL_FOLDER) ? path.slice(KURL_FOLDER.length) : path;
    return ownerOf(below) === undefined ? path : below;
  };
  const entries = index.entries.map(({ path, linkTo, ...rest }): PlacedEntry => ({
    ...rest,
    path: moved(path),
    ...(linkTo === undefined ? {} : { linkTo: moved(linkTo) }),
  }));
  return { ...index, entries };
}
