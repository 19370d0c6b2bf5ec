/** Finds add-on folders: `addons/<name>/<version>` and `packages/<name>/<version>` in a folder. */
import { firstOf } from '../core/counted.ts';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError, fileError, isMissing } from '../core/errors.ts';
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
  /** Absolute path of the folder that contains `addons/` and `packages/`. */
  readonly root: string;
  /** Path for messages: relative to the start of the search, with `/`. */
  readonly shown: string;
}

export interface FoundAddons {
  /** By tree, name, version. */
  readonly folders: readonly AddonFolder[];
  /** Findings for folders with invalid names. */
  readonly diagnostics: readonly Diagnostic[];
}

export const ADDON_TREES: readonly AddonTree[] = ['addons', 'packages'];

/** Folders next to the versions that are sources of versions (kURL's convention). */
const NOT_VERSIONS: ReadonlySet<string> = new Set(['template', 'build-images']);

interface Options {
  readonly signal: AbortSignal;
  /** Called for folders that cannot be listed, which are then skipped; by default the error is thrown. */
  readonly unreadable?: ((path: string, error: CurlewError) => void) | undefined;
}

/**
 * Add-on folders in `root` that match the patterns; all of them without a pattern. A pattern is a name (all its versions),
 * `name/version`, `name-version`, or a path (to a version, a name, `addons`, a folder that contains `addons`, or a file of a version),
 * relative to `root`. An add-on folder contains a Manifest or an install.sh. Throws `NOT_FOUND` for a pattern without a match, and if
 * there is no add-on at all.
 */
export async function findAddons(root: string, patterns: readonly string[], options: Options): Promise<FoundAddons> {
  const base = resolve(root);
  const here = await listRoot(base, base, options);
  if (patterns.length === 0) {
    if (here.length === 0) {
      requireFolder(base);
      const outer = await rootAbove(base, undefined, options);
      throw new CurlewError('NOT_FOUND', `no add-ons in ${join(base, 'addons')} and ${join(base, 'packages')}`, {
        hint:
          outer === undefined
            ? 'an add-on is a folder addons/<name>/<version> with a Manifest and an install.sh'
            : `run the command in ${outer}, the folder that contains them`,
      });
    }
    return checkedNames(here, base);
  }
  const chosen = new Map<string, AddonFolder>();
  for (const pattern of patterns) {
    const selected = await matchesIn(base, here, pattern, options);
    if (selected.length === 0) throw noMatch(pattern, base, here, await rootAbove(base, pattern, options));
    for (const one of selected) chosen.set(one.folder, one);
  }
  return checkedNames([...chosen.values()], base);
}

function requireFolder(path: string): void {
  const stats = statOf(path);
  if (stats?.isDirectory() === true) return;
  const [code, why] =
    stats === undefined
      ? (['NOT_FOUND', 'no such folder'] as const)
      : (['FILE_UNUSABLE', 'it is not a folder'] as const);
  throw new CurlewError(code, `cannot read ${path}: ${why}`, {
    hint: 'specify the folder that contains addons or packages',
  });
}

function matches({ name, version }: AddonFolder, pattern: string): boolean {
  return pattern === name || pattern === `${name}/${version}` || pattern === formatRef({ name, version });
}

async function matchesIn(
  base: string,
  here: readonly AddonFolder[],
  pattern: string,
  options: Options,
): Promise<readonly AddonFolder[]> {
  const named = here.filter((one) => matches(one, pattern));
  return named.length > 0 ? named : atPath(base, pattern, options);
}

/** The folder that contains add-ons, with the pattern one that it matches, for a path that is in one of their trees. */
async function rootAbove(path: string, pattern: string | undefined, { signal }: Options): Promise<string | undefined> {
  const parts = path.split('/');
  const at = parts.findLastIndex((part) => treeOf(part) !== undefined);
  if (at === -1) return undefined;
  const outer = parts.slice(0, at).join('/') || '/';
  // It is only for a hint: what cannot be listed there is no error.
  const options = { signal, unreadable: () => undefined };
  const there = await listRoot(outer, outer, options);
  const matching = pattern === undefined ? there : await matchesIn(outer, there, pattern, options);
  return matching.length === 0 ? undefined : outer;
}

function noMatch(pattern: string, base: string, here: readonly AddonFolder[], outer: string | undefined): CurlewError {
  if (statOf(resolve(base, pattern))?.isFile() === true) {
    return new CurlewError(
      'NOT_FOUND',
      `${JSON.stringify(pattern.slice(0, 200))} is a file that belongs to no add-on`,
      { hint: `leave it out; specify ${FORMS}` },
    );
  }
  const path = resolve(base, pattern);
  const isFolder = statOf(path)?.isDirectory() === true;
  if (isFolder && outer === undefined) {
    return new CurlewError('NOT_FOUND', `no add-ons in ${path}`, {
      hint: `an add-on is a folder addons/<name>/<version> with a Manifest and an install.sh${here.length === 0 ? '' : `; specify ${FORMS}; ${namesText(here, outer)}`}`,
    });
  }
  const versions = here.filter(({ name }) => pattern.startsWith(name) && /^[@/-]v?\d/.test(pattern.slice(name.length)));
  if (versions[0] !== undefined) {
    const all = firstOf(
      versions.map(({ version }) => version),
      MAX_NAMES,
    );
    return new CurlewError('NOT_FOUND', `no add-on matches ${JSON.stringify(pattern.slice(0, 200))}`, {
      hint: `${versions[0].name} is here in ${all}; specify ${FORMS}`,
    });
  }
  const near = nearest(pattern, new Set(here.flatMap(({ name, version }) => [name, formatRef({ name, version })])));
  const hint = near === undefined ? `specify ${FORMS}; ${namesText(here, outer)}` : `did you mean "${near}"?`;
  return new CurlewError('NOT_FOUND', `no add-on matches ${JSON.stringify(pattern.slice(0, 200))}`, { hint });
}

const FORMS = 'a name, name/version, name-version or a path';
const MAX_NAMES = 8;

function namesText(here: readonly AddonFolder[], outer: string | undefined): string {
  const names = [...new Set(here.map(({ name }) => name))];
  if (names.length === 0 && outer !== undefined) return `run the command in ${outer}, which contains the add-ons`;
  if (names.length === 0) return `this folder has no ${ADDON_TREES.join(' or ')}`;
  return `here are ${firstOf(names, MAX_NAMES)}`;
}

/** Sorts, and removes folders with invalid names. */
function checkedNames(all: readonly AddonFolder[], base: string): FoundAddons {
  const folders: AddonFolder[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const one of all) {
    const place = { file: shownPath(base, one.folder), line: 1, column: 1, length: 1 };
    const nameFits = isAddonName(one.name);
    if (!nameFits) {
      const hint = 'lower case letters, digits, ".", "_", "-", at most 100 characters';
      diagnostics.push(finding('addon/name', place, `"${one.name}" is not a valid add-on name`, hint));
    }
    if (!isVersion(one.version)) {
      const hint = 'letters, digits, ".", "_", "+", "-", at most 128 characters';
      diagnostics.push(finding('addon/version', place, `"${one.version}" is not a valid version`, hint));
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

/** Includes links: reading the folder reports them. */
async function subfolders(path: string, { unreadable }: Options): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  } catch (error) {
    if (isMissing(error)) return [];
    return passOver(path, fileError(`list ${path}`, error), unreadable);
  }
}

function passOver(path: string, error: CurlewError, unreadable: Options['unreadable']): readonly never[] {
  if (unreadable === undefined) throw error;
  unreadable(path, error);
  return [];
}

async function listRoot(root: string, base: string, options: Options): Promise<readonly AddonFolder[]> {
  const folders: AddonFolder[] = [];
  for (const tree of ADDON_TREES) folders.push(...(await listTree(root, tree, base, options)));
  return folders;
}

async function listTree(
  root: string,
  tree: AddonTree,
  base: string,
  options: Options,
): Promise<readonly AddonFolder[]> {
  const names = await subfolders(join(root, tree), options);
  const folders = await Promise.all(names.map(async (name) => listName(root, tree, name, base, options)));
  return folders.flat();
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
    if (!isAddonFolder(folder, options)) return [];
    return [{ tree, name, version, folder, root, shown: shownPath(base, folder) }];
  });
}

function isAddonFolder(folder: string, { unreadable }: Options): boolean {
  try {
    if (statOf(join(folder, MANIFEST)) !== undefined) return true;
    return statOf(join(folder, INSTALL_SH)) !== undefined;
  } catch (error) {
    return passOver(folder, fileError(`inspect ${folder}`, error), unreadable).length > 0;
  }
}

function treeOf(text: string): AddonTree | undefined {
  return ADDON_TREES.find((tree) => tree === text);
}

/** The add-ons at a path: one version, a name, a tree, or a folder that contains trees. */
async function atPath(base: string, pattern: string, options: Options): Promise<readonly AddonFolder[]> {
  const target = resolve(base, pattern);
  const isFile = statOf(target)?.isFile() === true;
  const path = isFile ? dirname(target) : target;
  const [parent, grandparent] = [dirname(path), dirname(dirname(path))];
  const versionTree = treeOf(basename(grandparent));
  if (versionTree !== undefined && statOf(path)?.isDirectory() === true) {
    const place = { tree: versionTree, name: basename(parent), version: basename(path) };
    return [{ ...place, folder: path, root: dirname(grandparent), shown: shownPath(base, path) }];
  }
  // A file such as a Manifest means its add-on; another one, such as an installer spec, does not mean all that are next to it.
  if (isFile) return [];
  const nameTree = treeOf(basename(parent));
  if (nameTree !== undefined) return listName(grandparent, nameTree, basename(path), base, options);
  const tree = treeOf(basename(path));
  if (tree !== undefined) return listTree(parent, tree, base, options);
  return listRoot(path, base, options);
}
