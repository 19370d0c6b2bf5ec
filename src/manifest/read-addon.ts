/** Reads an add-on folder from disk. Problems of the folder become findings; only I/O errors throw. */
import { readdirSync } from 'node:fs';
import { constants, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { digestOf, measured, type Measurement } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError, fileError, requireRefusal } from '../core/errors.ts';
import {
  ADDON_JSON,
  INSTALL_SH,
  MANIFEST,
  ownerOf,
  packageFileName,
  pathProblem,
  prefixOf,
  RESERVED_NAMES,
} from '../core/layout.ts';
import type { PackageFile } from '../core/package.ts';
import { ARCHES, compareText, formatRef, isVersion, type AddonRef } from '../core/ref.ts';
import { NO_CATEGORIES, type Categories } from './categories.ts';
import type { AddonFolder } from './find-addons.ts';
import { definedHooks, hookFunction } from './hooks.ts';
import { MANIFEST_TEXT_LIMIT, parseManifest, manifestTooLarge, type AddonManifest } from './parse.ts';
import { planManifest } from './directives.ts';
import { finder, type Find } from './rules.ts';
import { findFunctions } from '../formats/bash/shell.ts';
import { readBytesFile, readTextFile, statOf } from './text-file.ts';

/** A file of the folder, unread. */
type ListedFile = Pick<PackageFile, 'path' | 'mode' | 'size'>;

/** An add-on folder with a list of its files, which are not hashed. */
export interface AddonListing {
  readonly ref: AddonRef;
  /** Absolute path of the add-on's folder. */
  readonly folder: string;
  /** Absolute path of the folder that contains `addons/`; paths of Dockerfiles are relative to it. */
  readonly root: string;
  readonly shown: string;
  readonly manifest: AddonManifest;
  readonly manifestText: string;
  /** Undefined if it is missing, or if a finding explains why it cannot be read. */
  readonly installScript: string | undefined;
  /** Sorted by path, in code units. */
  readonly files: readonly ListedFile[];
  readonly categories: Categories;
  readonly settings: unknown;
  readonly diagnostics: readonly Diagnostic[];
}

export interface AddonSource
  extends
    Pick<AddonListing, 'ref' | 'folder' | 'root' | 'shown' | 'manifest' | 'settings' | 'diagnostics'>,
    Categories {
  /** Sorted by path, in code units. */
  readonly files: readonly PackageFile[];
  /** Full names of the lifecycle functions that install.sh defines. */
  readonly hooks: readonly string[];
}

interface Options {
  readonly signal: AbortSignal;
}

const BYTE_ORDER_MARK = '\u{FEFF}';
const INSTALL_SH_LIMIT = 4 * 1024 * 1024;
const JSON_LIMIT = 1024 * 1024;
const MAX_FILES = 100_000;
/** The extraction limit on nodes; sparse files report more than they contain. */
const MAX_BYTES = 2 ** 40;
const HASH_WIDTH = 4;
/** Size limit of the index of a package with the largest number of files. */
const INDEX_LIMIT = 64 * 1024 * 1024;
const READ_SIZE = 1024 * 1024;
/** Most files are smaller, and reading them synchronously is faster than using a thread. */
const SMALL = 64 * 1024;

/** Lists the files and parses metadata, without reading payloads: for lint and planning. */
export async function listAddon(place: AddonFolder, { signal }: Options): Promise<AddonListing> {
  const { tree, name, version, folder, root, shown } = place;
  const diagnostics: Diagnostic[] = [];
  const find = finder((one) => diagnostics.push(one));
  const { manifest, text } = readManifest(place, find);
  const installScript = readInstallScript(place, find);
  const [categoriesPath, categoriesShown] = [
    join(dirname(folder), 'categories.json'),
    `${dirname(shown)}/categories.json`,
  ];
  const categoriesText = readJson(categoriesPath, categoriesShown, 'addon/categories', find);
  const schemaText = readJson(join(folder, 'schema.json'), `${shown}/schema.json`, 'addon/schema', find);
  let [categories, settings]: [Categories, unknown] = [NO_CATEGORIES, undefined];
  if ((categoriesText ?? schemaText) !== undefined) {
    // Loaded on use: add-ons of kURL have neither of these files.
    const { parseCategories, parseSettingsSchema } = await import('./metadata.ts');
    const hasVersion = (name: string): boolean =>
      isVersion(name) && statOf(join(dirname(folder), name))?.isDirectory() === true;
    if (categoriesText !== undefined)
      categories = parseCategories(categoriesShown, categoriesText, { version, hasVersion, find });
    if (schemaText !== undefined) settings = parseSettingsSchema(`${shown}/schema.json`, schemaText, find);
  }
  const generated = new Set<string>(RESERVED_NAMES);
  for (const step of planManifest(manifest)) {
    if (step.kind === 'os-packages') generated.add(step.os);
    if (step.kind === 'container-build') generated.add(step.destination);
  }
  // Reading blocks the event loop: lets signals through between two add-ons.
  await setImmediate();
  const files = listFiles(place, generated, find, { signal });
  for (const file of files) await findPackage(place, file, find, { signal });
  diagnostics.sort(compareDiagnostics);
  const ref: AddonRef = { tree, name, version };
  const read = { manifest, manifestText: text, installScript, files, categories, settings };
  return { ref, folder, root, shown, ...read, diagnostics };
}

/** Lists, parses and hashes. Files that change meanwhile change digests; they cause no error. */
export async function readAddon(place: AddonFolder, { signal }: Options): Promise<AddonSource> {
  const { files: listed, categories, installScript, manifestText: _, ...listing } = await listAddon(place, { signal });
  const files = await mapLimited(listed, async (file, { signal }) => hashed(place.folder, file, signal), {
    width: HASH_WIDTH,
    signal,
  });
  const functions = new Set(findFunctions(INSTALL_SH, installScript ?? '').map(({ name }) => name));
  const hooks = definedHooks(place.name, functions).map((hook) => hookFunction(place.name, hook));
  return { ...listing, files, hooks, ...categories };
}

async function hashed(folder: string, { path, mode, size }: ListedFile, signal: AbortSignal): Promise<PackageFile> {
  if (size > SMALL) return hashedLarge(folder, { path, mode }, signal);
  const read = readBytesFile(join(folder, path), SMALL);
  if (read.kind === 'bytes') return { path, mode, size: read.bytes.byteLength, digest: digestOf(read.bytes) };
  throw fileChanged(join(folder, path));
}

async function hashedLarge(
  folder: string,
  { path, mode }: Omit<ListedFile, 'size'>,
  signal: AbortSignal,
): Promise<PackageFile> {
  const into: Measurement = { digest: undefined, size: 0 };
  try {
    // It may have become a link, or a pipe, which would block.
    await using file = await open(join(folder, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw fileChanged(join(folder, path));
    const body = file.createReadStream({ autoClose: false, signal, highWaterMark: READ_SIZE });
    for await (const chunk of measured(body, into)) if (chunk.byteLength > 0) signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    throw fileError(`read ${join(folder, path)}`, error);
  }
  if (into.digest === undefined)
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${join(folder, path)}: it was truncated`);
  return { path, mode, size: into.size, digest: into.digest };
}

function fileChanged(path: string): CurlewError {
  return new CurlewError('FILE_UNUSABLE', `cannot read ${path}: it changed while the folder was being read`, {
    hint: 'stop the program that writes to the folder, then run the same command again',
  });
}

function readManifest(
  { folder, shown }: AddonFolder,
  find: Find,
): { readonly manifest: AddonManifest; readonly text: string } {
  const file = `${shown}/${MANIFEST}`;
  const read = readTextFile(join(folder, MANIFEST), MANIFEST_TEXT_LIMIT);
  if (read.kind === 'absent') {
    const hint = 'a Manifest without directives is an empty file';
    find('manifest/missing', { file, line: 1, column: 1, length: 1 }, 'the add-on has no Manifest', hint);
  }
  if (read.kind === 'too-large') find(manifestTooLarge(file));
  const text = read.kind === 'text' ? read.text : '';
  const { manifest, diagnostics } = parseManifest(file, text);
  for (const diagnostic of diagnostics) find(diagnostic);
  return { manifest, text };
}

function readInstallScript({ folder, shown, tree }: AddonFolder, find: Find): string | undefined {
  const place = { file: `${shown}/${INSTALL_SH}`, line: 1, column: 1, length: 1 };
  const read = readTextFile(join(folder, INSTALL_SH), INSTALL_SH_LIMIT);
  if (read.kind === 'absent' && tree === 'addons') {
    find('install/missing', place, 'the add-on has no install.sh', 'it defines the lifecycle hooks');
  }
  if (read.kind === 'too-large') find('install/too-large', place, `larger than ${INSTALL_SH_LIMIT} bytes`);
  if (read.kind === 'text' && read.text.startsWith(BYTE_ORDER_MARK)) {
    find('install/byte-order-mark', place, 'the script begins with a byte order mark', 'curlew lint --fix removes it');
  }
  return read.kind === 'text' ? read.text : undefined;
}

function readJson(
  path: string,
  shown: string,
  rule: 'addon/categories' | 'addon/schema',
  find: Find,
): string | undefined {
  const read = readTextFile(path, JSON_LIMIT);
  if (read.kind === 'text') return read.text;
  const place = { file: shown, line: 1, column: 1, length: 1 };
  if (read.kind === 'too-large') find(rule, place, `larger than ${JSON_LIMIT} bytes`);
  if (read.kind === 'special') find(rule, place, 'not a regular file');
  return undefined;
}

interface Walk {
  readonly place: AddonFolder;
  /** Top-level names that the builder creates. */
  readonly generated: ReadonlySet<string>;
  readonly find: Find;
  readonly files: ListedFile[];
}

function listFiles(
  place: AddonFolder,
  generated: ReadonlySet<string>,
  find: Find,
  { signal }: Options,
): readonly ListedFile[] {
  const walk: Walk = { place, generated, find, files: [] };
  const stats = statOf(place.folder);
  if (stats?.isDirectory() === true) walkFolder(walk, '', { signal });
  else if (stats === undefined) find('addon/not-regular', startOf(place.shown), 'the folder does not exist');
  else find('addon/not-regular', startOf(place.shown), 'the folder is a symbolic link', 'replace it with a folder');
  if (walk.files.length > MAX_FILES) {
    find('addon/too-many-files', startOf(place.shown), `more than ${MAX_FILES} files`);
  } else if (walk.files.reduce((sum, { size }) => sum + size, 0) > MAX_BYTES) {
    find('addon/too-many-files', startOf(place.shown), 'the files are larger than 1 TiB in total');
  }
  return walk.files.toSorted((a, b) => compareText(a.path, b.path));
}

function startOf(file: string): Diagnostic['place'] {
  return { file, line: 1, column: 1, length: 1 };
}

function walkFolder(walk: Walk, below: string, { signal }: Options): void {
  const { place, find, files } = walk;
  signal.throwIfAborted();
  if (files.length > MAX_FILES) return;
  const path = join(place.folder, below);
  let names: readonly string[];
  try {
    names = readdirSync(path);
  } catch (error) {
    throw fileError(`list ${path}`, error);
  }
  if (names.length === 0 && below !== '') {
    find('addon/empty-folder', startOf(`${place.shown}/${below}`), 'the folder is empty and is not packed');
  }
  for (const name of names) walkName(walk, below === '' ? name : `${below}/${name}`, { signal });
}

/** Reports a package inside an add-on, such as one in a build folder that was copied with an older version. */
async function findPackage(place: AddonFolder, { path }: ListedFile, find: Find, { signal }: Options): Promise<void> {
  if (!/\.(?:tar\.gz|tgz)$/i.test(path)) return;
  const isOwn = ARCHES.some((arch) => packageFileName(place, arch) === basename(path));
  const what = isOwn ? 'a package of this add-on' : await whatIsPacked(join(place.folder, path), { signal });
  if (what === undefined) return;
  const hint = 'delete it, and build into a folder outside the add-on';
  find('addon/own-package', startOf(`${place.shown}/${path}`), `this is ${what}`, hint);
}

/** Identifies a package by its index; undefined for archives that curlew has not built. */
async function whatIsPacked(path: string, { signal }: Options): Promise<string | undefined> {
  const { openFileSource, readIndex } = await import('../formats/archive/read.ts');
  try {
    await using source = await openFileSource(path);
    const { entries } = await readIndex(source, { signal, admit: admitIndex });
    const owners = entries.flatMap((entry) => (basename(entry.path) === ADDON_JSON ? [ownerOf(entry.path)] : []));
    const [first, ...more] = owners.filter((owner) => owner !== undefined);
    if (first === undefined) return undefined;
    return more.length === 0 ? `the package of ${formatRef(first)}` : `a bundle of ${more.length + 1} packages`;
  } catch (error) {
    requireRefusal(error, signal);
    // Packing reports files that cannot be read.
    return undefined;
  }
}

function admitIndex(bytes: number): void {
  if (bytes > INDEX_LIMIT) throw new CurlewError('PACKAGE_INVALID', 'the index is larger than that of a package');
}

function walkName(walk: Walk, path: string, { signal }: Options): void {
  const { place, generated, find, files } = walk;
  const at = startOf(`${place.shown}/${path}`);
  const tooLong = pathProblem(`${prefixOf(place)}${path}`);
  const problem = path.includes('\u{FFFD}') ? 'is not UTF-8' : tooLong;
  if (problem !== undefined) {
    find('addon/path', at, `the path ${problem}`, 'rename the file');
    return;
  }
  if (generated.has(path)) {
    const hint = 'the builder creates this name; rename the file or folder, or remove the directive';
    find('addon/reserved-name', at, `"${path}" is reserved`, hint);
    return;
  }
  const stats = statOf(join(place.folder, path));
  if (stats === undefined) return;
  if (stats.isDirectory()) {
    walkFolder(walk, path, { signal });
  } else if (stats.isFile()) {
    files.push({ path, mode: (stats.mode & 0o100) === 0 ? 0o644 : 0o755, size: stats.size });
  } else {
    const what = stats.isSymbolicLink() ? 'a symbolic link' : 'not a regular file';
    find('addon/not-regular', at, `this is ${what}; packages contain only regular files`, 'replace it with a copy');
  }
}
