/** The Dockerfile that a `dockerout` line names, and the files around it that it may copy. */
import { readdir, readlink, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import type { SentEntry } from '../../formats/archive/send-tar.ts';
import { canonicalJson, type Digest, digestOf } from '../../core/digest.ts';
import { CurlewError, fileError, isMissing } from '../../core/errors.ts';
import { compareText } from '../../core/ref.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { requireWithin } from '../../manifest/within-repository.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { type Dockerfile, readDockerfile } from './dockerfile.ts';

/** Base folders of the paths in an add-on's Manifest. */
export interface SourceRoots {
  /** The folder that contains `addons/`. */
  readonly repository: string;
  /** The Manifest's folder. */
  readonly addon: string;
}

export interface BuildContext {
  readonly dockerfile: Dockerfile;
  /** Sorted by path; empty if the Dockerfile copies nothing. */
  readonly entries: readonly SentEntry[];
  /** Digest of the Dockerfile and of every file that it could copy: path, mode, content. */
  readonly digest: Digest;
}

const TEXT_LIMIT = 1 << 20;
/** Each rule is matched against every file. */
const MAX_RULES = 1000;
const MAX_FILES = 10_000;
const MAX_BYTES = 2 ** 30;

/**
 * Finds the Dockerfile: relative to the repository's root, as in kURL, or to the Manifest's folder. The build sees only the
 * Dockerfile, which kURL passes on standard input, unless it copies files: then also its folder, within limits and without
 * files that `.dockerignore` names.
 */
export async function readBuildContext(
  path: string,
  roots: SourceRoots,
  doing: string,
  { signal }: Cancellable,
): Promise<BuildContext> {
  const { file, text } = await findDockerfile(path, roots, doing);
  signal.throwIfAborted();
  const dockerfile = readDockerfile(text);
  const own = { dockerfile: digestOf(text) };
  if (!dockerfile.usesContext) return { dockerfile, entries: [], digest: digestOf(canonicalJson(own)) };
  try {
    const entries = await listContext(dirname(file), doing, { signal });
    const rows: unknown[] = [];
    for (const entry of entries) rows.push(await describe(entry, signal));
    return { dockerfile, entries, digest: digestOf(canonicalJson({ ...own, context: rows })) };
  } catch (error) {
    signal.throwIfAborted();
    throw fileError(`${doing}: read ${dirname(file)}`, error);
  }
}

async function findDockerfile(
  path: string,
  { repository, addon }: SourceRoots,
  doing: string,
): Promise<{ readonly file: string; readonly text: string }> {
  const tried = [join(repository, path), join(addon, path)];
  for (const file of tried) {
    requireWithin(file, repository, doing);
    const text = await readIfThere(file, doing);
    if (text !== undefined) return { file, text };
  }
  throw new CurlewError('NOT_FOUND', `cannot ${doing}: no Dockerfile ${path}: neither ${tried.join(' nor ')} exists`, {
    hint: 'the path is relative to the root of the repository (the folder that contains addons/) or to the Manifest',
  });
}

async function readIfThere(file: string, doing: string): Promise<string | undefined> {
  try {
    const stats = await stat(file);
    if (!stats.isFile()) throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${file} is not a file`);
    if (stats.size > TEXT_LIMIT)
      throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${file} is larger than 1 MiB`);
    return await readStateFile(file, TEXT_LIMIT);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError(`${doing}: read ${file}`, error);
  }
}

async function listContext(folder: string, doing: string, { signal }: Cancellable): Promise<readonly SentEntry[]> {
  const rules = (await readIfThere(join(folder, '.dockerignore'), doing)) ?? '';
  if (rules.split('\n').length > MAX_RULES) {
    throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: ${folder}/.dockerignore has more than ${MAX_RULES} lines`);
  }
  const ignored = ignoreRules(rules);
  const entries: SentEntry[] = [];
  let bytes = 0;
  const walk = async (at: string): Promise<void> => {
    for (const item of await readdir(at, { withFileTypes: true })) {
      signal.throwIfAborted();
      const full = join(at, item.name);
      const path = relative(folder, full);
      // Ignored folders are also scanned: a rule may include their files again.
      if (item.isDirectory()) await walk(full);
      if (ignored(path)) continue;
      if (item.isDirectory()) entries.push({ kind: 'folder', path, mode: 0o755 });
      else if (item.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(full) });
      else if (item.isFile()) {
        const { size, mode } = await stat(full);
        bytes += size;
        const content = { kind: 'path', path: full } as const;
        entries.push({ kind: 'file', path, mode: (mode & 0o111) === 0 ? 0o644 : 0o755, size, content });
      }
      if (entries.length <= MAX_FILES && bytes <= MAX_BYTES) continue;
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot ${doing}: the folder of the Dockerfile, ${folder}, contains more than ${MAX_FILES} files or 1 GiB`,
        { hint: `list files that the Dockerfile does not copy in ${basename(folder)}/.dockerignore` },
      );
    }
  };
  await walk(folder);
  return entries.toSorted((a, b) => compareText(a.path, b.path));
}

async function describe(entry: SentEntry, signal: AbortSignal): Promise<unknown> {
  if (entry.kind === 'link') return [entry.path, 'link', entry.target];
  if (entry.kind === 'folder') return [entry.path, 'folder'];
  const { path, mode, content } = entry;
  if (content.kind === 'bytes') return [path, mode, digestOf(content.data)];
  if (content.kind === 'path') return [path, mode, (await hashFile(content.path, { signal })).digest];
  throw new TypeError(`no file of a folder: ${path}`);
}

/** A part of a pattern: one matching character, any number of them, or any number of folders with their slashes. */
type Step =
  | { readonly kind: 'one' | 'many'; readonly fits: (character: string) => boolean }
  | { readonly kind: 'folders' };

const isAnything = (): boolean => true;
const isNoSlash = (character: string): boolean => character !== '/';

/** `*` and `?` stop at a slash, `**` does not; `[…]` is a set of characters. */
function stepsOf(pattern: string): readonly Step[] {
  return [...pattern.matchAll(/\*\*\/|\*\*|[*?]|\[[^\]/[]+\]|[^]/gu)].map(([part]): Step => {
    if (part === '**/') return { kind: 'folders' };
    if (part === '**') return { kind: 'many', fits: isAnything };
    if (part === '*') return { kind: 'many', fits: isNoSlash };
    if (part === '?') return { kind: 'one', fits: isNoSlash };
    if (part.length < 3) return { kind: 'one', fits: (character) => character === part };
    const set = new RegExp(`^${part.replaceAll('\\', String.raw`\\`)}$`, 's');
    return { kind: 'one', fits: (character) => set.test(character) };
  });
}

/**
 * Whether a path, or a folder that contains it, matches. Follows all alternatives at once, so that the time is bounded by the
 * product of the lengths of path and pattern.
 */
function fitsSteps(path: string, steps: readonly Step[]): boolean {
  const enter = (into: Set<number>, at: number): void => {
    into.add(at);
    // Any number includes zero.
    if (at < steps.length && steps[at]?.kind !== 'one') enter(into, at + 1);
  };
  let now = new Set<number>();
  enter(now, 0);
  for (const character of path) {
    if (character === '/' && now.has(steps.length)) return true;
    const next = new Set<number>();
    for (const at of now) {
      const step = steps[at];
      if (step?.kind === 'folders') {
        next.add(at);
        if (character === '/') enter(next, at + 1);
      } else if (step?.fits(character) === true) enter(next, step.kind === 'many' ? at : at + 1);
    }
    now = next;
  }
  return now.has(steps.length);
}

/**
 * Whether a path relative to the folder, with `/`, is ignored: the last matching rule applies, and `!` includes again. Rules
 * are relative to the folder, with or without a leading slash; invalid patterns are skipped.
 */
export function ignoreRules(text: string): (path: string) => boolean {
  const rules = text.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith('#')) return [];
    const trimmed = line.trim();
    const back = trimmed.startsWith('!');
    const pattern = (back ? trimmed.slice(1).trim() : trimmed).replace(/^(?:\.?\/)+/, '').replace(/(?<!\/)\/+$/, '');
    if (pattern === '' || pattern === '.') return [];
    try {
      return [{ back, steps: stepsOf(pattern) }];
    } catch {
      return [];
    }
  });
  return (path) => {
    let ignored = false;
    for (const { back, steps } of rules) if (fitsSteps(path, steps)) ignored = !back;
    return ignored;
  };
}
