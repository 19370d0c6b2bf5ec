/** Finds add-on folders: `addons/<name>/<version>` and `packages/<name>/<version>` below a folder. */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { INSTALL_SH, MANIFEST } from '../core/layout.ts';
import { compareText, compareVersions, formatRef, isAddonName, isVersion, type AddonTree } from '../core/ref.ts';
import { nearest } from '../core/nearest.ts';
import { finding } from './rules.ts';
import { statOf } from './text-file.ts';

export interface AddonFolder {
  readonly tree: AddonTree;
  readonly name: string;
  readonly version: string;
  /** Absolute path of the folder itself. */
  readonly folder: string;
  /** Absolute path of the folder that holds `addons/` and `packages/`. */
  readonly root: string;
  /** Path for messages: relative to where the search began, with `/`. */
  readonly shown: string;
}

export interface FoundAddons {
  /** By tree, name, version. */
  readonly folders: readonly AddonFolder[];
  /** Folders whose names cannot be an add-on's. */
  readonly diagnostics: readonly Diagnostic[];
}

const TREES: readonly AddonTree[] = ['addons', 'packages'];

/** Folders beside the versions that are sources of versions, not versions (kURL's convention). */
const NOT_VERSIONS: ReadonlySet<string> = new Set(['template', 'build-images']);

interface Options {
  readonly signal: AbortSignal;
  /** Takes folders that cannot be listed, which are passed over; without it they are thrown. */
  readonly unreadable?: ((path: string, error: CurlewError) => void) | undefined;
}

/**
 * Add-on folders below `root` that the patterns name, all of them when there is no pattern. A pattern is a name (all its
 * versions), `name/version`, `name-version`, or a path (to a version, a name, `addons`, or a folder that holds
 * `addons`), relative to `root`. A folder counts when it holds a Manifest or an install.sh.
 * Throws `NOT_FOUND` for a pattern that names nothing, and when there is no add-on at all.
 */
export async function findAddons(root: string, patterns: readonly string[], options: Options): Promise<FoundAddons> {
  const base = resolve(root);
  const here = await listRoot(base, base, options);
  if (patterns.length === 0) {
    if (here.length === 0) {
      const hint = 'an add-on is a folder addons/<name>/<version> with a Manifest and an install.sh';
      throw new CurlewError('NOT_FOUND', `no add-ons below ${join(base, 'addons')} and ${join(base, 'packages')}`, {
        hint,
      });
    }
    return judged(here, base);
  }
  const chosen = new Map<string, AddonFolder>();
  for (const pattern of patterns) {
    const named = here.filter((one) => matches(one, pattern));
    const found = named.length > 0 ? named : await atPath(base, pattern, options);
    if (found.length === 0) throw nothingNamed(pattern, here);
    for (const one of found) chosen.set(one.folder, one);
  }
  return judged([...chosen.values()], base);
}

function matches({ name, version }: AddonFolder, pattern: string): boolean {
  return pattern === name || pattern === `${name}/${version}` || pattern === formatRef({ name, version });
}

function nothingNamed(pattern: string, here: readonly AddonFolder[]): CurlewError {
  const near = nearest(pattern, new Set(here.flatMap(({ name, version }) => [name, formatRef({ name, version })])));
  const hint = near === undefined ? 'give a name, name/version, name-version or a path' : `did you mean "${near}"?`;
  return new CurlewError('NOT_FOUND', `no add-on is named by ${JSON.stringify(pattern.slice(0, 200))}`, { hint });
}

/** Sorts, and takes out what has an impossible name. */
function judged(all: readonly AddonFolder[], base: string): FoundAddons {
  const folders: AddonFolder[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const one of all) {
    const place = { file: shownPath(base, one.folder), line: 1, column: 1, length: 1 };
    const nameFits = isAddonName(one.name);
    if (!nameFits) {
      const hint = 'lower case letters, digits, ".", "_", "-", at most 100 characters';
      diagnostics.push(finding('addon/name', place, `"${one.name}" cannot be the name of an add-on`, hint));
    }
    if (!isVersion(one.version)) {
      const hint = 'letters, digits, ".", "_", "+", "-", at most 128 characters';
      diagnostics.push(finding('addon/version', place, `"${one.version}" cannot be a version`, hint));
    } else if (nameFits) {
      folders.push(one);
    }
  }
  const order = (a: AddonFolder, b: AddonFolder): number =>
    compareText(a.tree, b.tree) || compareText(a.name, b.name) || compareVersions(a.version, b.version);
  return { folders: folders.toSorted(order), diagnostics: diagnostics.toSorted(compareDiagnostics) };
}

function shownPath(base: string, path: string): string {
  return relative(base, path).split(sep).join('/') || '.';
}

/** Links are listed too: whoever reads the folder tells what is wrong with them. */
async function subfolders(path: string, { unreadable }: Options): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return [];
    return passOver(path, fileError(`list ${path}`, error), unreadable);
  }
}

function passOver(path: string, error: CurlewError, unreadable: Options['unreadable']): readonly never[] {
  if (unreadable === undefined) throw error;
  unreadable(path, error);
  return [];
}

async function listRoot(root: string, base: string, options: Options): Promise<readonly AddonFolder[]> {
  const found: AddonFolder[] = [];
  for (const tree of TREES) found.push(...(await listTree(root, tree, base, options)));
  return found;
}

async function listTree(
  root: string,
  tree: AddonTree,
  base: string,
  options: Options,
): Promise<readonly AddonFolder[]> {
  const names = await subfolders(join(root, tree), options);
  const found = await Promise.all(names.map(async (name) => listName(root, tree, name, base, options)));
  return found.flat();
}

async function listName(
  root: string,
  tree: AddonTree,
  name: string,
  base: string,
  options: Options,
): Promise<readonly AddonFolder[]> {
  options.signal.throwIfAborted();
  const path = join(root, tree, name);
  const versions = (await subfolders(path, options)).filter((version) => !NOT_VERSIONS.has(version));
  return versions.flatMap((version): readonly AddonFolder[] => {
    const folder = join(path, version);
    if (!holdsAddon(folder, options)) return [];
    return [{ tree, name, version, folder, root, shown: shownPath(base, folder) }];
  });
}

function holdsAddon(folder: string, { unreadable }: Options): boolean {
  try {
    if (statOf(join(folder, MANIFEST)) !== undefined) return true;
    return statOf(join(folder, INSTALL_SH)) !== undefined;
  } catch (error) {
    return passOver(folder, fileError(`look into ${folder}`, error), unreadable).length > 0;
  }
}

function treeOf(text: string): AddonTree | undefined {
  return TREES.find((tree) => tree === text);
}

/** What a path names: one version, a name, a tree, or a folder that holds trees. */
async function atPath(base: string, pattern: string, options: Options): Promise<readonly AddonFolder[]> {
  const given = resolve(base, pattern);
  // A Manifest or an install.sh stands for its add-on.
  const path = statOf(given)?.isFile() === true ? dirname(given) : given;
  const [parent, grandparent] = [dirname(path), dirname(dirname(path))];
  const versionTree = treeOf(basename(grandparent));
  if (versionTree !== undefined && statOf(path)?.isDirectory() === true) {
    const place = { tree: versionTree, name: basename(parent), version: basename(path) };
    return [{ ...place, folder: path, root: dirname(grandparent), shown: shownPath(base, path) }];
  }
  const nameTree = treeOf(basename(parent));
  if (nameTree !== undefined) return listName(grandparent, nameTree, basename(path), base, options);
  const tree = treeOf(basename(path));
  if (tree !== undefined) return listTree(parent, tree, base, options);
  return listRoot(path, base, options);
}
