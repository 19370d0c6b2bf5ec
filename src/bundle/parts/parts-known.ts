/** What is known already of a set of parts that is to be written: from a try that was cut off, or from an older set. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalJson, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { HEAD_LIMIT, MOST_PARTS, parseHead, partsPath, type PartsHead } from '../../core/parts.ts';
import { readLeft } from '../../platform/files/left-file.ts';
import { requireRegular } from '../../platform/files/name-file.ts';
import { readStateFile, writeStateFile } from '../../platform/files/state-file.ts';
import type { PlannedPart } from './split-plan.ts';

/** What a set of parts is made from and how: only a set of the same can be gone on with. */
export interface SetIdentity {
  readonly name: string;
  readonly size: number;
  readonly tocDigest: Digest;
  /** Most bytes of a part; 0 for no limit. */
  readonly limit: number;
  readonly folders: readonly string[];
}

export interface BegunSet {
  readonly layout: readonly PlannedPart[];
  /** Of the parts that were written, by name. */
  readonly digests: ReadonlyMap<string, Digest>;
}

/** Where it is kept what has been written of a set that is not finished. */
export function begunPath({ name, folders }: SetIdentity): string {
  return join(folders[0] ?? '.', partsPath.begun(name));
}

/** Keeps what has been written so far. */
export async function keepBegun(identity: SetIdentity, { layout, digests }: BegunSet): Promise<void> {
  const parts = layout.map(({ name, folder, size }) => ({ folder, size, digest: digests.get(name) ?? '' }));
  await writeStateFile(begunPath(identity), `${canonicalJson({ identity, parts })}\n`, 0o644);
}

/** Undefined when nothing was begun, or something else. What another user has put there is `FILE_UNUSABLE`. */
export async function readBegun(identity: SetIdentity): Promise<BegunSet | undefined> {
  const value = jsonOf((await readLeft(begunPath(identity), HEAD_LIMIT)) ?? '');
  if (!isObject(value) || !isObject(value['identity'])) return undefined;
  if (canonicalJson(value['identity']) !== canonicalJson(identity)) return undefined;
  const rows = value['parts'];
  if (!Array.isArray(rows) || rows.length > MOST_PARTS) return undefined;
  const layout: PlannedPart[] = [];
  const digests = new Map<string, Digest>();
  let offset = 0;
  for (const row of rows as readonly unknown[]) {
    if (!isObject(row)) return undefined;
    const { folder, size, digest } = row;
    const isKnown = typeof folder === 'string' && identity.folders.includes(folder);
    if (!isKnown || typeof size !== 'number' || !Number.isSafeInteger(size) || size <= 0) return undefined;
    const name = partsPath.part(identity.name, layout.length + 1);
    if (typeof digest === 'string' && isDigest(digest)) digests.set(name, digest);
    layout.push({ name, folder, offset, size });
    offset += size;
  }
  return offset === identity.size ? { layout, digests } : undefined;
}

/** The head files of finished sets of this name in the folders; what cannot be read as one, or tells of others, is left out. */
export async function readOlderHeads({ name, folders }: SetIdentity): Promise<readonly PartsHead[]> {
  const heads: PartsHead[] = [];
  for (const folder of folders) {
    const path = join(folder, partsPath.head(name));
    if ((await sizeThere(path)) === undefined) continue;
    try {
      const head = parseHead((await readStateFile(path, HEAD_LIMIT)) ?? '', path);
      // What is not of this name is not ours to replace.
      if (head.name === name) heads.push(head);
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
    }
  }
  return heads;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Bytes of a file; undefined when there is none. Something else in its place is `FILE_UNUSABLE`. */
export async function sizeThere(path: string): Promise<number | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found !== undefined) requireRegular(path, found);
  return found?.size;
}
