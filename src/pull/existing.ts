/** What stands already where a file is to be fetched to. */
import { rename, stat } from 'node:fs/promises';
import type { RangeSource } from '../archive/entry.ts';
import { headerMember } from '../archive/place.ts';
import { openFileSource, readIndex, readRange } from '../archive/read.ts';
import { sameBytes } from '../archive/member.ts';
import { verifyArchive } from '../archive/verify.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { digestOfAll } from './bricks.ts';
import type { OpenPlace } from './open-place.ts';
import { pathsBeside } from './partial-file.ts';

export interface Wanted {
  readonly sha256: Digest | undefined;
  readonly check: ((toc: Uint8Array, from: OpenPlace) => Promise<void>) | undefined;
  readonly force: boolean;
  readonly signal: AbortSignal;
}

/**
 * `whole` when the file is there, to the last byte. The beginning of it, as other programs leave it, becomes what is gone
 * on with. Anything else is `FILE_EXISTS`, unless it may be replaced.
 */
export async function settleExisting(file: string, opened: OpenPlace, wanted: Wanted): Promise<'whole' | 'free'> {
  const { signal, force } = wanted;
  if (!(await isThere(file))) return 'free';
  const { partial } = pathsBeside(file);
  {
    await using source = await openFileSource(file);
    if (await isWhole(source, opened, wanted)) return 'whole';
    if (force) return 'free';
    if ((await isThere(partial)) || !(await isBeginning(source, opened, signal))) throw exists(file);
  }
  try {
    await rename(file, partial);
  } catch (error) {
    throw fileError(`go on with ${file}`, error);
  }
  return 'free';
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw fileError(`look at ${path}`, error);
  }
}

function exists(file: string): CurlewError {
  return new CurlewError('FILE_EXISTS', `pull ${file}: a file of this name is there, and is not the one to fetch`, {
    hint: 'name another file, or replace it with --force',
  });
}

async function isWhole(source: RangeSource, opened: OpenPlace, { sha256, check, signal }: Wanted): Promise<boolean> {
  if (source.size !== opened.object.size) return false;
  if (sha256 !== undefined && (await digestOfAll(source, { signal })) !== sha256) return false;
  const { end } = opened;
  if (end === undefined) return sha256 !== undefined;
  try {
    if ((await readIndex(source, { signal })).tocDigest !== end.index.tocDigest) return false;
    await verifyArchive(source, { signal });
  } catch (error) {
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) return false;
    throw error;
  }
  await check?.(end.toc, opened);
  return true;
}

/** Shorter than the file, begins with the header of its first entry, and is no whole archive itself. */
async function isBeginning(source: RangeSource, { object, end }: OpenPlace, signal: AbortSignal): Promise<boolean> {
  const [first] = end?.index.entries ?? [];
  if (first === undefined || source.size >= object.size) return false;
  const header = headerMember(first);
  if (source.size < header.byteLength) return false;
  if (!sameBytes(await readRange(source, 0, header.byteLength, { signal }), header)) return false;
  try {
    await readIndex(source, { signal });
    return false;
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'PACKAGE_INVALID') return true;
    throw error;
  }
}
