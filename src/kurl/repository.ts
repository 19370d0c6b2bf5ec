/**
 * Reads a repository written for kURL: an edge. Bounded, follows no links out of it, runs none of its scripts; unreadable
 * files become findings.
 */
import { readdir } from 'node:fs/promises';
import { realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CurlewError, requireRefusal } from '../core/errors.ts';
import { HOST_PREFLIGHT, INSTALL_SH } from '../core/layout.ts';
import { compareText } from '../core/ref.ts';
import { findAddons, type AddonFolder } from '../manifest/find-addons.ts';
import { listAddon, type AddonListing } from '../manifest/read-addon.ts';
import { readTextFile, statOf } from '../manifest/text-file.ts';
import { type AddFinding, findings, linePlace, type Finding } from './finding.ts';
import { scriptFacts, templateFacts, type ScriptFacts } from './script-facts.ts';
import { readVersionLists, VERSION_LISTS, type VersionLists } from './version-lists.ts';

/** A script; the path is relative to the add-on's folder. */
export interface OwnScript {
  readonly path: string;
  readonly text: string;
  readonly facts: ScriptFacts;
}

export interface ReadAddon {
  readonly folder: AddonFolder;
  /** Undefined if the folder could not be read. */
  readonly listing: AddonListing | undefined;
  readonly scripts: readonly OwnScript[];
  readonly hostPreflight: string | undefined;
  readonly findings: readonly Finding[];
}

export interface RepositoryScript {
  readonly shown: string;
  readonly facts: ScriptFacts;
}

export interface KurlRepository {
  /** Absolute. */
  readonly root: string;
  readonly addons: readonly ReadAddon[];
  /** The scripts of kURL itself, from `scripts/`. */
  readonly scripts: readonly RepositoryScript[];
  /** Undefined if the file does not exist. */
  readonly versions: VersionLists | undefined;
  readonly findings: readonly Finding[];
}

interface Options {
  readonly signal: AbortSignal;
}

/** Size of one script; the largest real ones have a tenth of it. */
const SCRIPT_LIMIT = 1 << 20;
const PREFLIGHT_LIMIT = 1 << 20;
const LISTS_LIMIT = 1 << 20;
/** Total size of the scripts of one add-on, and of the repository's own. */
const SCRIPTS_LIMIT = 32 << 20;
const MAX_ADDONS = 20_000;
const MAX_SCRIPTS = 5000;
const DEEPEST = 8;

/** By text, because versions of an add-on often share scripts. */
type FactCache = Map<string, ScriptFacts>;

/** Throws `NOT_FOUND` if there is no add-on. */
export async function readRepository(root: string, { signal }: Options): Promise<KurlRepository> {
  const { list, add } = findings();
  const shown = (path: string): string => relative(root, path) || '.';
  const unreadable = (path: string, error: CurlewError): void => {
    add('missing', 'folder', shown(path), `cannot be read: ${reason(error)}`, linePlace(shown(path)));
  };
  const { folders, diagnostics } = await findAddons(root, [], { signal, unreadable });
  if (folders.length > MAX_ADDONS) {
    throw new CurlewError('UNSUPPORTED', `cannot read ${root}: more than ${MAX_ADDONS} versions of add-ons`);
  }
  for (const { message, place, hint } of diagnostics) add('missing', 'folder', place.file, message, place, hint);
  const cache: FactCache = new Map();
  const addons: ReadAddon[] = [];
  for (const folder of folders) addons.push(await readOne(folder, root, cache, { signal }));
  const scripts = await readScripts(root, cache, { signal });
  const versions = readLists(root, add);
  return { root, addons, scripts, versions, findings: list };
}

/** The cause of an error, without the operation, which the place shows. */
function reason(error: CurlewError): string {
  const { cause, message } = error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : message;
}

/** Whether a path does not lead out of `root` by a symbolic link. */
function isInside(root: string, path: string): boolean {
  try {
    return realpathSync(path) === join(realpathSync(root), relative(root, path));
  } catch {
    return false;
  }
}

async function readOne(folder: AddonFolder, root: string, cache: FactCache, { signal }: Options): Promise<ReadAddon> {
  const { list, add } = findings();
  const nothing = { folder, listing: undefined, scripts: [], hostPreflight: undefined, findings: list };
  const place = linePlace(folder.shown);
  if (!isInside(root, folder.folder)) {
    add(
      'missing',
      'folder',
      folder.shown,
      'not read because its path contains a symbolic link',
      place,
      'replace the link with a copy',
    );
    return nothing;
  }
  try {
    const listing = await listAddon(folder, { signal });
    for (const { code, severity, message, place, hint } of listing.diagnostics) {
      if (severity !== 'error') continue;
      const kind = /^(?:addon|source)\//.test(code) ? 'folder' : code.startsWith('install/') ? 'script' : 'directive';
      add('missing', kind, code, message, place, hint);
    }
    const scripts = readOwnScripts(listing, cache, add);
    return { ...nothing, listing, scripts, hostPreflight: readPreflight(listing, add) };
  } catch (error) {
    requireRefusal(error, signal);
    add('missing', 'folder', folder.shown, `cannot be read: ${reason(error)}`, place);
    return nothing;
  }
}

function readOwnScripts(
  { files, folder, shown, installScript }: AddonListing,
  cache: FactCache,
  add: AddFinding,
): readonly OwnScript[] {
  const scripts: OwnScript[] = [];
  let room = SCRIPTS_LIMIT;
  for (const { path, size } of files) {
    if (!path.endsWith('.sh')) continue;
    const place = linePlace(`${shown}/${path}`);
    if (size > Math.min(room, SCRIPT_LIMIT)) {
      const what = `not read: more than ${SCRIPT_LIMIT} bytes, or too many scripts`;
      // The listing reports an install.sh that is even larger.
      if (path !== INSTALL_SH) add('note', 'script', path, what, place);
      else if (installScript !== undefined) add('missing', 'script', path, what, place);
      continue;
    }
    const read = readTextFile(join(folder, path), SCRIPT_LIMIT);
    if (read.kind !== 'text') continue;
    room -= size;
    const problem = badText(read.text);
    if (problem !== undefined) add('missing', 'script', path, problem, place);
    else scripts.push({ path, text: read.text, facts: factsOf(read.text, cache, scriptFacts) });
  }
  return scripts;
}

/** Why bash cannot parse a text. */
function badText(text: string): string | undefined {
  if (/[\0\u{FFFD}]/u.test(text)) return 'not a text file';
  return /\r\n/.test(text) ? 'its lines end with CR LF, which bash does not support' : undefined;
}

function readPreflight({ files, folder, shown }: AddonListing, add: AddFinding): string | undefined {
  if (!files.some(({ path }) => path === HOST_PREFLIGHT)) return undefined;
  const read = readTextFile(join(folder, HOST_PREFLIGHT), PREFLIGHT_LIMIT);
  if (read.kind === 'text') return read.text;
  const place = linePlace(`${shown}/${HOST_PREFLIGHT}`);
  add('missing', 'preflight', HOST_PREFLIGHT, `larger than ${PREFLIGHT_LIMIT} bytes`, place);
  return undefined;
}

function factsOf(text: string, cache: FactCache, make: (text: string) => ScriptFacts): ScriptFacts {
  const known = cache.get(text) ?? make(text);
  cache.set(text, known);
  return known;
}

/** A file that a hook expands; undefined if it does not exist or is too large. */
export function readTemplate({ folder, files }: AddonListing, path: string): OwnScript | undefined {
  if (!files.some((file) => file.path === path)) return undefined;
  const read = readTextFile(join(folder, path), SCRIPT_LIMIT);
  return read.kind === 'text' ? { path, text: read.text, facts: templateFacts(read.text) } : undefined;
}

async function readScripts(root: string, cache: FactCache, { signal }: Options): Promise<readonly RepositoryScript[]> {
  const scripts: RepositoryScript[] = [];
  let room = SCRIPTS_LIMIT;
  const walk = async (folder: string, depth: number): Promise<void> => {
    signal.throwIfAborted();
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => compareText(a.name, b.name))) {
      const path = join(folder, entry.name);
      if (scripts.length >= MAX_SCRIPTS) return;
      if (entry.isDirectory() && depth < DEEPEST) await walk(path, depth + 1);
      if (!entry.isFile() || !entry.name.endsWith('.sh')) continue;
      const text = textWithin(path, room);
      if (text === undefined || badText(text) !== undefined) continue;
      room -= text.length;
      scripts.push({ shown: relative(root, path), facts: factsOf(text, cache, scriptFacts) });
    }
  };
  const start = join(root, 'scripts');
  if (isInside(root, start)) await walk(start, 0);
  return scripts;
}

/** Undefined if it cannot be read: scripts of kURL itself only make messages more precise. */
function textWithin(path: string, room: number): string | undefined {
  try {
    const read = (statOf(path)?.size ?? 0) <= room ? readTextFile(path, SCRIPT_LIMIT) : undefined;
    return read?.kind === 'text' ? read.text : undefined;
  } catch {
    return undefined;
  }
}

function readLists(root: string, add: AddFinding): VersionLists | undefined {
  const path = join(root, VERSION_LISTS);
  if (!isInside(root, dirname(path))) return undefined;
  const read = readTextFile(path, LISTS_LIMIT);
  if (read.kind === 'absent') return undefined;
  if (read.kind !== 'text') {
    const what = read.kind === 'special' ? 'not a regular file' : `larger than ${LISTS_LIMIT} bytes`;
    add('missing', 'order', VERSION_LISTS, what, linePlace(VERSION_LISTS));
    return undefined;
  }
  const lists = readVersionLists(VERSION_LISTS, read.text);
  const { problem } = lists;
  if (problem !== undefined) {
    const hint = 'lists above this place are used; write the others into versions.json manually';
    add('missing', 'order', VERSION_LISTS, `cannot be read completely: ${problem.message}`, problem.place, hint);
  }
  return lists;
}
