/** The Dockerfile that a `dockerout` line names, and the files around it that it may copy. */
import { readdir, readlink, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { SentEntry } from '../../formats/archive/send-tar.ts';
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { compareText } from '../../core/ref.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { requireWithin } from '../within-repository.ts';
import { readDockerfile, type Dockerfile } from './dockerfile.ts';
import { ignoreRules } from './docker-ignore.ts';

/** Where the paths of an add-on's Manifest begin. */
export interface SourceRoots {
  /** The folder that holds `addons/`. */
  readonly repository: string;
  /** The Manifest's folder. */
  readonly addon: string;
}

export interface BuildContext {
  readonly dockerfile: Dockerfile;
  /** Sorted by path; empty when the Dockerfile copies nothing. */
  readonly entries: readonly SentEntry[];
  /** Of the Dockerfile and of every file it could copy: path, mode, content. */
  readonly digest: Digest;
}

const TEXT_LIMIT = 1 << 20;
/** Each is held against every file. */
const MOST_RULES = 1000;
const MOST_FILES = 10_000;
const MOST_BYTES = 2 ** 30;

interface Options {
  readonly signal: AbortSignal;
}

/**
 * Finds the Dockerfile: from the repository's root, as kURL has it (kurl.md 1.5), or from the Manifest's folder. The
 * build sees the Dockerfile alone, as kURL feeds it on standard input, unless it copies files: then its own folder, within
 * limits and without what `.dockerignore` names.
 */
export async function readBuildContext(
  path: string,
  roots: SourceRoots,
  doing: string,
  { signal }: Options,
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
    await requireWithin(file, repository, doing);
    const text = await readIfThere(file, doing);
    if (text !== undefined) return { file, text };
  }
  throw new CurlewError('NOT_FOUND', `${doing}: no Dockerfile ${path}: neither ${tried.join(' nor ')} exists`, {
    hint: 'the path counts from the root of the repository (the folder that holds addons/) or from the Manifest',
  });
}

async function readIfThere(file: string, doing: string): Promise<string | undefined> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new CurlewError('FILE_UNUSABLE', `${doing}: ${file} is not a file`);
    if (found.size > TEXT_LIMIT) throw new CurlewError('FILE_UNUSABLE', `${doing}: ${file} has more than 1 MiB`);
    return await readStateFile(file, TEXT_LIMIT);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError(`${doing}: read ${file}`, error);
  }
}

async function listContext(folder: string, doing: string, { signal }: Options): Promise<readonly SentEntry[]> {
  const rules = (await readIfThere(join(folder, '.dockerignore'), doing)) ?? '';
  if (rules.split('\n').length > MOST_RULES) {
    throw new CurlewError('FILE_UNUSABLE', `${doing}: ${folder}/.dockerignore has more than ${MOST_RULES} lines`);
  }
  const ignored = ignoreRules(rules);
  const entries: SentEntry[] = [];
  let bytes = 0;
  const walk = async (at: string): Promise<void> => {
    for (const item of await readdir(at, { withFileTypes: true })) {
      signal.throwIfAborted();
      const full = join(at, item.name);
      const path = relative(folder, full);
      // A folder that is ignored is still looked into: what it holds may be taken back in.
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
      if (entries.length <= MOST_FILES && bytes <= MOST_BYTES) continue;
      throw new CurlewError(
        'FILE_UNUSABLE',
        `${doing}: the folder of the Dockerfile, ${folder}, holds more than ${MOST_FILES} files or 1 GiB`,
        { hint: `name in ${basename(folder)}/.dockerignore what the Dockerfile does not copy` },
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
