/** Images of all packages in a folder: an install folder, an unpacked bundle, or a bundle of kURL. */
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, ifExists } from '../../core/errors.ts';
import { ADDON_JSON, nodePath } from '../../core/layout.ts';
import { ADDON_JSON_LIMIT, parseAddonJson } from '../../core/package.ts';
import { addonRef, compareText, formatRef, isAddonName, isVersion, type AddonRef } from '../../core/ref.ts';
import { requireImages } from '../node/placed-package.ts';
import type { SourcePackage } from '../node/source.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { folderFiles, sourceFiles } from './folder-files.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import { archiveImages, HOST_ARCH, packageImages, type RequiredImage } from './required-images.ts';

/** The images of one package. */
export interface FoundImages {
  /** `demo-1.0`, or `shared` for kURL's own images. */
  readonly title: string;
  readonly images: readonly RequiredImage[];
}

/** Bundles of kURL contain everything in this folder. */
const KURL = 'kurl';
/** Folder with kURL's image of its own tools. */
const SHARED = 'shared';
const ARCHIVE = /\.(?:tar|tar\.gz|tgz)$/;
const ARCHIVES_AT_ONCE = 2;

/** Images of packages that are not extracted; packages of other architectures are left out. */
export function sourceImages(packages: readonly SourcePackage[]): readonly FoundImages[] {
  return packages
    .filter(({ addon }) => addon.arch === HOST_ARCH)
    .map((source) => ({ title: formatRef(source.ref), images: packageImages(sourceFiles(source), source.addon) }))
    .filter(({ images }) => images.length > 0);
}

/**
 * Images in `addons/NAME/VERSION` and `packages/NAME/VERSION`, also below `kurl/`. An addon.json lists the images of a package;
 * without one, the archives in `images/` are read for their names. Images of packages with a record are verified against it.
 * Packages without images, and those of other architectures, are left out. `NOT_FOUND` if there are no images.
 */
export async function findImages(folder: string, { signal }: Cancellable): Promise<readonly FoundImages[]> {
  const roots = [folder, join(folder, KURL)];
  const groups: FoundImages[] = [];
  for (const root of roots) {
    for (const place of await packageFolders(root)) {
      signal.throwIfAborted();
      groups.push((await recordedImages(folder, place, { signal })) ?? (await imagesOf(place, { signal })));
    }
    const shared = await archivesIn(root, SHARED, { signal });
    groups.push({ title: SHARED, images: shared });
  }
  const some = groups.filter(({ images }) => images.length > 0);
  if (some.length > 0) return some;
  const root = await stat(folder).catch(() => undefined);
  const what = root === undefined ? 'no such folder' : root.isDirectory() ? 'there are none' : 'it is not a folder';
  throw new CurlewError('NOT_FOUND', `cannot find images in ${folder}: ${what}`, {
    hint: 'specify an unpacked bundle, or a folder that contains addons/NAME/VERSION/images',
  });
}

/** Undefined if the package has no record. */
async function recordedImages(
  folder: string,
  { path, title, ref }: PackageFolder,
  { signal }: Cancellable,
): Promise<FoundImages | undefined> {
  if (path !== join(folder, nodePath.addon(ref))) return undefined;
  const source = await requireImages(folder, ref, { signal });
  if (source === undefined) return undefined;
  const images = source.addon.arch === HOST_ARCH ? packageImages(sourceFiles(source), source.addon) : [];
  return { title, images };
}

interface PackageFolder {
  readonly ref: AddonRef;
  readonly path: string;
  readonly title: string;
}

async function packageFolders(root: string): Promise<readonly PackageFolder[]> {
  const places: PackageFolder[] = [];
  for (const tree of ['addons', 'packages'] as const) {
    for (const name of (await folders(join(root, tree))).filter(isAddonName)) {
      for (const version of (await folders(join(root, tree, name))).filter(isVersion)) {
        const ref = addonRef(name, version, tree);
        places.push({ path: join(root, tree, name, version), title: formatRef(ref), ref });
      }
    }
  }
  return places;
}

async function imagesOf({ path, title }: PackageFolder, { signal }: Cancellable): Promise<FoundImages> {
  const text = await readStateFile(join(path, ADDON_JSON), ADDON_JSON_LIMIT);
  if (text === undefined) return { title, images: await archivesIn(path, 'images', { signal }) };
  const addon = parseAddonJson(text, path);
  return { title, images: addon.arch === HOST_ARCH ? packageImages(folderFiles(path), addon) : [] };
}

async function archivesIn(path: string, folder: string, { signal }: Cancellable): Promise<readonly RequiredImage[]> {
  const names = (await listed(join(path, folder), (entry) => entry.isFile())).filter((name) => ARCHIVE.test(name));
  const files = folderFiles(path);
  const read = async (name: string, within: Cancellable): Promise<readonly RequiredImage[]> =>
    archiveImages(files, `${folder}/${name}`, within);
  return (await mapLimited(names, read, { width: ARCHIVES_AT_ONCE, signal })).flat();
}

async function folders(path: string): Promise<readonly string[]> {
  return listed(path, (entry) => entry.isDirectory());
}

/** Sorted names; none if the folder does not exist. */
async function listed(path: string, select: (entry: Dirent) => boolean): Promise<readonly string[]> {
  const entries = (await ifExists(`read ${path}`, readdir(path, { withFileTypes: true }))) ?? [];
  return entries
    .filter(select)
    .map(({ name }) => name)
    .toSorted(compareText);
}
