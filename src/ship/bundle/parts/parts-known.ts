/** Existing parts of a set: progress of an interrupted run, and older finished sets. */
import { jsonIn } from '../../../core/json.ts';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { canonicalJson, isDigest, type Digest } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { HEAD_LIMIT, MAX_PARTS, parseHead, partsPath, type PartsHead } from '../../../core/parts.ts';
import { byKey, fits, integer } from '../../../core/schema.ts';
import { readLeft } from '../../../platform/files/left-file.ts';
import { requireRegular } from '../../../platform/files/name-file.ts';
import { readStateFile, writeStateFile } from '../../../platform/files/state-file.ts';
import type { PlannedPart } from './split-plan.ts';

/** Source and layout of a set of parts. Only a set with the same identity can be resumed. */
export interface SetIdentity {
  readonly name: string;
  readonly size: number;
  readonly tocDigest: Digest;
  /** Maximum bytes of a part; 0 for no limit. */
  readonly limit: number;
  readonly folders: readonly string[];
}

export interface SetProgress {
  readonly layout: readonly PlannedPart[];
  /** Digests of the written parts, by name. */
  readonly digests: ReadonlyMap<string, Digest>;
}

/** Path of the progress file of an unfinished set. */
export function progressPath({ name, folders }: SetIdentity): string {
  return join(folders[0] ?? '.', partsPath.begun(name));
}

/** Saves which parts have been written. */
export async function saveProgress(identity: SetIdentity, { layout, digests }: SetProgress): Promise<void> {
  const parts = layout.map(({ name, folder, size }) => ({ folder, size, digest: digests.get(name) ?? '' }));
  await writeStateFile(progressPath(identity), `${canonicalJson({ identity, parts })}\n`, 0o644);
}

const savedProgress = v.object({
  identity: byKey(v.unknown()),
  parts: v.pipe(
    v.array(v.object({ folder: v.string(), size: v.pipe(integer, v.minValue(1)), digest: v.optional(v.unknown()) })),
    v.maxLength(MAX_PARTS),
  ),
});

/** Undefined without progress of this set. A file of another user is `FILE_UNUSABLE`. */
export async function readProgress(identity: SetIdentity): Promise<SetProgress | undefined> {
  const value = jsonIn((await readLeft(progressPath(identity), HEAD_LIMIT)) ?? '');
  if (!fits(savedProgress, value) || canonicalJson(value.identity) !== canonicalJson(identity)) return undefined;
  const layout: PlannedPart[] = [];
  const digests = new Map<string, Digest>();
  let offset = 0;
  for (const { folder, size, digest } of value.parts) {
    if (!identity.folders.includes(folder)) return undefined;
    const name = partsPath.part(identity.name, layout.length + 1);
    if (isDigest(digest)) digests.set(name, digest);
    layout.push({ name, folder, offset, size });
    offset += size;
  }
  return offset === identity.size ? { layout, digests } : undefined;
}

/** The head files of finished sets with this name in the folders. Skips unreadable ones and those of other names. */
export async function readOlderHeads({ name, folders }: SetIdentity): Promise<readonly PartsHead[]> {
  const heads: PartsHead[] = [];
  for (const folder of folders) {
    const path = join(folder, partsPath.head(name));
    if ((await sizeOfFile(path)) === undefined) continue;
    try {
      const head = parseHead((await readStateFile(path, HEAD_LIMIT)) ?? '', path);
      // Only sets with this name may be replaced.
      if (head.name === name) heads.push(head);
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
    }
  }
  return heads;
}

/** Size of a file; undefined if it does not exist. Anything except a regular file is `FILE_UNUSABLE`. */
export async function sizeOfFile(path: string): Promise<number | undefined> {
  const stats = await stat(path).catch(() => undefined);
  if (stats !== undefined) requireRegular(path, stats);
  return stats?.size;
}
