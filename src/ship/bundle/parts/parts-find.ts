/** Finds and checks the parts of a head file. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../../core/digest.ts';
import { CurlewError, noSuchFile } from '../../../core/errors.ts';
import { HEAD_LIMIT, isHeadPath, parseHead, type Part, type PartsHead } from '../../../core/parts.ts';
import { hashFile } from '../../../platform/files/hash-file.ts';
import { readStateFile } from '../../../platform/files/state-file.ts';

export interface FoundPart {
  readonly part: Part;
  /** Undefined if no folder has a file with that name. */
  readonly path: string | undefined;
  /** Why the part is unusable; undefined if it is usable. */
  readonly problem: string | undefined;
}

/** A problem, or the other part of the same head that the file is; undefined if valid. */
type Verdict = string | { readonly is: Part } | undefined;

interface CheckedPart extends Pick<FoundPart, 'part' | 'path'> {
  readonly verdict: Verdict;
}

interface FindOptions {
  /** Read every byte; otherwise check only names and sizes. */
  readonly digests: boolean;
  /** Called with the number of newly read bytes. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** Reads a head file. */
export async function readHead(path: string): Promise<PartsHead> {
  const text = await readStateFile(path, HEAD_LIMIT);
  if (text === undefined) throw noSuchFile(`open ${path}`);
  return parseHead(text, path);
}

/**
 * Searches the folders for parts of `head`. Prefers a valid file if several have a part's name. Returns a result for
 * every part.
 */
export async function findParts(
  head: PartsHead,
  folders: readonly string[],
  { only = head.parts, ...options }: FindOptions & { readonly only?: readonly Part[] },
): Promise<readonly FoundPart[]> {
  const checked: CheckedPart[] = [];
  for (const part of only) {
    let best: CheckedPart = { part, path: undefined, verdict: 'is missing' };
    for (const folder of folders) {
      const path = join(folder, part.name);
      const stats = await stat(path).catch(() => undefined);
      if (stats?.isFile() !== true) continue;
      const verdict = await checkPart(head, part, { path, folder, size: stats.size }, options);
      if (best.path === undefined || verdict === undefined) best = { part, path, verdict };
      if (verdict === undefined) break;
    }
    checked.push(best);
  }
  return checked.map(({ part, path, verdict }) => ({ part, path, problem: problemOf(verdict, checked) }));
}

interface Candidate {
  readonly path: string;
  readonly folder: string;
  readonly size: number;
}

async function checkPart(
  head: PartsHead,
  part: Part,
  { path, folder, size }: Candidate,
  { digests, onBytes, signal }: FindOptions,
): Promise<Verdict> {
  if (size === part.size && !digests) return undefined;
  if (size !== part.size && !head.parts.some((other) => other.size === size)) {
    if (size > part.size) return `is too long: ${size} bytes instead of ${part.size}`;
    return `is truncated: ${size} bytes instead of ${part.size}`;
  }
  const { digest } = await hashFile(path, { onChunk: (chunk) => onBytes?.(chunk.byteLength), signal });
  if (digest === part.digest) return undefined;
  const other = head.parts.find((one) => one.digest === digest);
  if (other !== undefined) return { is: other };
  const foreign = await foreignPart(folder, digest);
  if (foreign !== undefined) return `belongs to another bundle: it is ${foreign}`;
  if (size === part.size) return 'is damaged, or of another bundle: its digest does not match the head file';
  return `is ${size > part.size ? 'too long' : 'truncated'}: ${size} bytes instead of ${part.size}`;
}

/** Identifies a part of another bundle with the other head files in the folder. */
async function foreignPart(folder: string, digest: Digest): Promise<string | undefined> {
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

/** A file that is another part is a copy if that part is also at its own path, otherwise swapped. */
function problemOf(verdict: Verdict, checked: readonly CheckedPart[]): string | undefined {
  if (typeof verdict !== 'object') return verdict;
  const { name } = verdict.is;
  const isCopy = checked.some((other) => other.part.name === name && other.verdict === undefined);
  return isCopy ? `is a copy of ${name}` : `is swapped: it is ${name}`;
}

const MAX_LISTED = 20;

/** One error that lists every unusable part; undefined if all are usable. */
export function partsError(doing: string, parts: readonly FoundPart[]): CurlewError | undefined {
  const wrong = parts.flatMap(({ part, problem }) => (problem === undefined ? [] : [`${part.name} ${problem}`]));
  if (wrong.length === 0) return undefined;
  const more = wrong.length > MAX_LISTED ? `; and ${wrong.length - MAX_LISTED} more` : '';
  const missing = parts.every(({ path, problem }) => problem === undefined || path === undefined);
  return new CurlewError(
    missing ? 'NOT_FOUND' : 'DIGEST_MISMATCH',
    `cannot ${doing}: ${wrong.slice(0, MAX_LISTED).join('; ')}${more}`,
    {
      hint: missing
        ? 'put the parts next to the head file, or specify the folders that contain them'
        : 'copy those parts again from their source',
    },
  );
}
