/** Where the parts of a head file are, and what is wrong with them. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { HEAD_LIMIT, isHeadPath, parseHead, type Part, type PartsHead } from '../../core/parts.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { readStateFile } from '../../platform/files/state-file.ts';

export interface FoundPart {
  readonly part: Part;
  /** Undefined where no folder has a file of that name. */
  readonly path: string | undefined;
  /** What is wrong, in a few words; undefined where nothing is. */
  readonly problem: string | undefined;
}

/** A text, or which other part of the same head a file is. */
type Verdict = string | { readonly is: Part } | undefined;

interface Judged extends Omit<FoundPart, 'problem'> {
  readonly verdict: Verdict;
}

interface FindOptions {
  /** Read every byte; otherwise only names and sizes are looked at. */
  readonly digests: boolean;
  /** Told how many bytes more have been read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** Reads a head file. */
export async function readHead(path: string): Promise<PartsHead> {
  const text = await readStateFile(path, HEAD_LIMIT);
  if (text === undefined) throw new CurlewError('NOT_FOUND', `open ${path}: no such file`);
  return parseHead(text, path);
}

/**
 * Looks for these parts of `head` in the folders. Of several files with a part's name one that is right is taken. Every
 * part is told of, whatever is found before.
 */
export async function findParts(
  head: PartsHead,
  folders: readonly string[],
  { only = head.parts, ...options }: FindOptions & { readonly only?: readonly Part[] },
): Promise<readonly FoundPart[]> {
  const judged: Judged[] = [];
  for (const part of only) {
    let best: Judged = { part, path: undefined, verdict: 'is missing' };
    for (const folder of folders) {
      const path = join(folder, part.name);
      const is = await stat(path).catch(() => undefined);
      if (is?.isFile() !== true) continue;
      const verdict = await judge(head, part, { path, folder, size: is.size }, options);
      if (best.path === undefined || verdict === undefined) best = { part, path, verdict };
      if (verdict === undefined) break;
    }
    judged.push(best);
  }
  return judged.map(({ part, path, verdict }) => ({ part, path, problem: problemOf(verdict, judged) }));
}

interface Candidate {
  readonly path: string;
  readonly folder: string;
  readonly size: number;
}

async function judge(
  head: PartsHead,
  part: Part,
  { path, folder, size }: Candidate,
  { digests, onBytes, signal }: FindOptions,
): Promise<Verdict> {
  if (size === part.size && !digests) return undefined;
  if (size !== part.size && !head.parts.some((other) => other.size === size)) {
    if (size > part.size) return `is too long: ${size} bytes, not ${part.size}`;
    return `is cut off: ${size} bytes, not ${part.size}`;
  }
  const { digest } = await hashFile(path, { onChunk: (chunk) => onBytes?.(chunk.byteLength), signal });
  if (digest === part.digest) return undefined;
  const other = head.parts.find((one) => one.digest === digest);
  if (other !== undefined) return { is: other };
  const stranger = await strangerOf(folder, digest);
  if (stranger !== undefined) return `belongs to another bundle: it is ${stranger}`;
  if (size === part.size) return 'is damaged, or of another bundle: its digest is not that of the head file';
  return `is ${size > part.size ? 'too long' : 'cut off'}: ${size} bytes, not ${part.size}`;
}

/** Other head files in the folder may know whose a part is. */
async function strangerOf(folder: string, digest: Digest): Promise<string | undefined> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!isHeadPath(name)) continue;
    try {
      const head = await readHead(join(folder, name));
      const part = head.parts.find((one) => one.digest === digest);
      if (part !== undefined) return `${part.name} of ${name}`;
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
    }
  }
  return undefined;
}

/** A part that is another one is a copy of it when that one is where it should be, and swapped when not. */
function problemOf(verdict: Verdict, judged: readonly Judged[]): string | undefined {
  if (typeof verdict !== 'object') return verdict;
  const { name } = verdict.is;
  const isThere = judged.some((other) => other.part.name === name && other.verdict === undefined);
  return isThere ? `is a copy of ${name}` : `is swapped: it is ${name}`;
}

const MOST_NAMED = 20;

/** One error that names every part that cannot be used. Undefined when all can be. */
export function partsError(doing: string, found: readonly FoundPart[]): CurlewError | undefined {
  const wrong = found.flatMap(({ part, problem }) => (problem === undefined ? [] : [`${part.name} ${problem}`]));
  if (wrong.length === 0) return undefined;
  const more = wrong.length > MOST_NAMED ? `; and ${wrong.length - MOST_NAMED} more` : '';
  const missing = found.every(({ path, problem }) => problem === undefined || path === undefined);
  return new CurlewError(
    missing ? 'NOT_FOUND' : 'DIGEST_MISMATCH',
    `${doing}: ${wrong.slice(0, MOST_NAMED).join('; ')}${more}`,
    {
      hint: missing
        ? 'put the parts beside the head file, or name the folders where they are'
        : 'copy those parts again from where they came',
    },
  );
}
