/**
 * Looks at a repository made for kURL: an edge. Bounded, follows no links out of it, runs nothing of it; what cannot be
 * read becomes findings.
 */
import { readdir } from 'node:fs/promises';
import { realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_SH } from '../core/layout.ts';
import { compareText } from '../core/ref.ts';
import { findAddons, type AddonFolder } from '../manifest/find-addons.ts';
import { listAddon, type AddonListing } from '../manifest/read-addon.ts';
import { readTextFile, statOf } from '../manifest/text-file.ts';
import { findings, placeOf, type Finding } from './finding.ts';
import { scriptFacts, templateFacts, type ScriptFacts } from './script-facts.ts';
import { readVersionLists, VERSION_LISTS, type VersionLists } from './version-lists.ts';

/** A text of a script, by its path below the add-on's folder. */
export interface OwnScript {
  readonly path: string;
  readonly text: string;
  readonly facts: ScriptFacts;
}

export interface ReadAddon {
  readonly folder: AddonFolder;
  /** Undefined when nothing of it could be looked at. */
  readonly listing: AddonListing | undefined;
  readonly scripts: readonly OwnScript[];
  readonly hostPreflight: string | undefined;
  readonly findings: readonly Finding[];
}

export interface RepositoryScript {
  readonly shown: string;
  readonly facts: ScriptFacts;
}

export interface Repository {
  /** Absolute. */
  readonly root: string;
  readonly addons: readonly ReadAddon[];
  /** Below `scripts/`: what kURL has in its own shell. */
  readonly scripts: readonly RepositoryScript[];
  /** Undefined when there is no such file. */
  readonly versions: VersionLists | undefined;
  readonly findings: readonly Finding[];
}

interface Options {
  readonly signal: AbortSignal;
}

export const HOST_PREFLIGHT = 'host-preflight.yaml';
/** Of one script that is looked at; the largest real ones have a tenth of it. */
const SCRIPT_LIMIT = 1 << 20;
const PREFLIGHT_LIMIT = 1 << 20;
const LISTS_LIMIT = 1 << 20;
/** Bytes of scripts that are read of one add-on, and of the repository's own. */
const SCRIPTS_LIMIT = 32 << 20;
const MOST_ADDONS = 20_000;
const MOST_SCRIPTS = 5000;
const DEEPEST = 8;

/** Facts by text: versions of an add-on often share their scripts. */
type FactCache = Map<string, ScriptFacts>;

/** Throws `NOT_FOUND` when there is no add-on. */
export async function readRepository(root: string, { signal }: Options): Promise<Repository> {
  const { found, tell } = findings();
  const shown = (path: string): string => relative(root, path) || '.';
  const unreadable = (path: string, error: CurlewError): void => {
    tell('missing', 'folder', shown(path), `cannot be read: ${reason(error)}`, placeOf(shown(path)));
  };
  const { folders, diagnostics } = await findAddons(root, [], { signal, unreadable });
  if (folders.length > MOST_ADDONS) {
    throw new CurlewError('UNSUPPORTED', `look at ${root}: more than ${MOST_ADDONS} versions of add-ons`);
  }
  for (const { message, place, hint } of diagnostics) tell('missing', 'folder', place.file, message, place, hint);
  const cache: FactCache = new Map();
  const addons: ReadAddon[] = [];
  for (const folder of folders) addons.push(await readOne(folder, root, cache, { signal }));
  const scripts = await readScripts(root, cache, { signal });
  const versions = readLists(root, tell);
  return { root, addons, scripts, versions, findings: found };
}

/** What an error says, without what was being done: the place tells that. */
function reason(error: CurlewError): string {
  const { cause, message } = error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : message;
}

/** Whether a path is what it says, and not a way out by a link. */
function isInside(root: string, path: string): boolean {
  try {
    return realpathSync(path) === join(realpathSync(root), relative(root, path));
  } catch {
    return false;
  }
}

async function readOne(folder: AddonFolder, root: string, cache: FactCache, { signal }: Options): Promise<ReadAddon> {
  const { found, tell } = findings();
  const nothing = { folder, listing: undefined, scripts: [], hostPreflight: undefined, findings: found };
  const place = placeOf(folder.shown);
  if (!isInside(root, folder.folder)) {
    tell(
      'missing',
      'folder',
      folder.shown,
      'reached by a symbolic link: not looked at',
      place,
      'put a copy in its place',
    );
    return nothing;
  }
  try {
    const listing = await listAddon(folder, { signal });
    for (const { code, severity, message, place, hint } of listing.diagnostics) {
      if (severity !== 'error') continue;
      const kind = /^(?:addon|source)\//.test(code) ? 'folder' : code.startsWith('install/') ? 'script' : 'directive';
      tell('missing', kind, code, message, place, hint);
    }
    const scripts = readOwnScripts(listing, cache, tell);
    return { ...nothing, listing, scripts, hostPreflight: readPreflight(listing, tell) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    tell('missing', 'folder', folder.shown, `cannot be read: ${reason(error)}`, place);
    return nothing;
  }
}

type TellFinding = ReturnType<typeof findings>['tell'];

function readOwnScripts(
  { files, folder, shown, installScript }: AddonListing,
  cache: FactCache,
  tell: TellFinding,
): readonly OwnScript[] {
  const scripts: OwnScript[] = [];
  let room = SCRIPTS_LIMIT;
  for (const { path, size } of files) {
    if (!path.endsWith('.sh')) continue;
    const place = placeOf(`${shown}/${path}`);
    if (size > Math.min(room, SCRIPT_LIMIT)) {
      const what = `not looked at: more than ${SCRIPT_LIMIT} bytes, or too many scripts`;
      // Of one that is larger still, the listing has told.
      if (path !== INSTALL_SH) tell('note', 'script', path, what, place);
      else if (installScript !== undefined) tell('missing', 'script', path, what, place);
      continue;
    }
    const read = readTextFile(join(folder, path), SCRIPT_LIMIT);
    if (read.kind !== 'text') continue;
    room -= size;
    const problem = badText(read.text);
    if (problem !== undefined) tell('missing', 'script', path, problem, place);
    else scripts.push({ path, text: read.text, facts: factsOf(read.text, cache, scriptFacts) });
  }
  return scripts;
}

/** What makes bash understand nothing of a text. */
function badText(text: string): string | undefined {
  if (/[\0\u{FFFD}]/u.test(text)) return 'not a text: no shell can read it';
  return /\r\n/.test(text) ? 'its lines end in CR LF, which bash does not understand' : undefined;
}

function readPreflight({ files, folder, shown }: AddonListing, tell: TellFinding): string | undefined {
  if (!files.some(({ path }) => path === HOST_PREFLIGHT)) return undefined;
  const read = readTextFile(join(folder, HOST_PREFLIGHT), PREFLIGHT_LIMIT);
  if (read.kind === 'text') return read.text;
  const place = placeOf(`${shown}/${HOST_PREFLIGHT}`);
  tell('missing', 'preflight', HOST_PREFLIGHT, `larger than ${PREFLIGHT_LIMIT} bytes`, place);
  return undefined;
}

function factsOf(text: string, cache: FactCache, make: (text: string) => ScriptFacts): ScriptFacts {
  const known = cache.get(text) ?? make(text);
  cache.set(text, known);
  return known;
}

/** A file that a hook expands, undefined when it is not there or too large. */
export function readTemplate({ folder, files }: AddonListing, path: string): OwnScript | undefined {
  if (!files.some((file) => file.path === path)) return undefined;
  const read = readTextFile(join(folder, path), SCRIPT_LIMIT);
  return read.kind === 'text' ? { path, text: read.text, facts: templateFacts(read.text) } : undefined;
}

async function readScripts(root: string, cache: FactCache, { signal }: Options): Promise<readonly RepositoryScript[]> {
  const found: RepositoryScript[] = [];
  let room = SCRIPTS_LIMIT;
  const walk = async (folder: string, depth: number): Promise<void> => {
    signal.throwIfAborted();
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => compareText(a.name, b.name))) {
      const path = join(folder, entry.name);
      if (found.length >= MOST_SCRIPTS) return;
      if (entry.isDirectory() && depth < DEEPEST) await walk(path, depth + 1);
      if (!entry.isFile() || !entry.name.endsWith('.sh')) continue;
      const text = textWithin(path, room);
      if (text === undefined || badText(text) !== undefined) continue;
      room -= text.length;
      found.push({ shown: relative(root, path), facts: factsOf(text, cache, scriptFacts) });
    }
  };
  const start = join(root, 'scripts');
  if (isInside(root, start)) await walk(start, 0);
  return found;
}

/** Scripts of kURL itself only tell more of what is missing: one that cannot be read is passed over. */
function textWithin(path: string, room: number): string | undefined {
  try {
    const read = (statOf(path)?.size ?? 0) <= room ? readTextFile(path, SCRIPT_LIMIT) : undefined;
    return read?.kind === 'text' ? read.text : undefined;
  } catch {
    return undefined;
  }
}

function readLists(root: string, tell: TellFinding): VersionLists | undefined {
  const path = join(root, VERSION_LISTS);
  if (!isInside(root, dirname(path))) return undefined;
  const read = readTextFile(path, LISTS_LIMIT);
  if (read.kind === 'absent') return undefined;
  if (read.kind !== 'text') {
    const what = read.kind === 'special' ? 'not a regular file' : `larger than ${LISTS_LIMIT} bytes`;
    tell('missing', 'order', VERSION_LISTS, what, placeOf(VERSION_LISTS));
    return undefined;
  }
  const lists = readVersionLists(VERSION_LISTS, read.text);
  const { problem } = lists;
  if (problem !== undefined) {
    const hint = 'lists above that place are taken; write the others by hand into versions.json';
    tell('missing', 'order', VERSION_LISTS, `cannot be read on: ${problem.message}`, problem.place, hint);
  }
  return lists;
}
