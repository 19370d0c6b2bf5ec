/** What stands already where a file is to be fetched to. */
import { rename, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import type { RangeSource } from '../formats/archive/entry.ts';
import { headerMember } from '../formats/archive/place.ts';
import { openFileSource, readIndex, readRange } from '../formats/archive/read.ts';
import { sameBytes } from '../formats/archive/member.ts';
import { verifyArchive } from '../formats/archive/verify.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { reportStep, type Report } from '../core/events.ts';
import { openLeft } from '../platform/files/left-file.ts';
import { readArchiveEnd, type ArchiveEnd, type OpenPlace } from './open-place.ts';
import { pathsBeside } from './partial-file.ts';

export interface Wanted {
  readonly sha256: Digest | undefined;
  readonly check: ((toc: Uint8Array, from: OpenPlace) => Promise<void>) | undefined;
  readonly force: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** A file that is there to its last byte. */
interface Settled {
  /** Digest of its table of contents; undefined where nobody has to know. */
  readonly contents: Digest | undefined;
  /** False where the place tells nothing but a length, which is the same. */
  readonly compared: boolean;
}

/**
 * Undefined when the file is to be fetched. The beginning of it, as other programs leave it, becomes what is gone on
 * with. Anything else is `FILE_EXISTS`, unless it may be replaced.
 */
export async function settleExisting(file: string, opened: OpenPlace, wanted: Wanted): Promise<Settled | undefined> {
  const { signal, force } = wanted;
  if (!(await isThere(file))) return undefined;
  const { partial } = pathsBeside(file);
  {
    await using source = await openFileSource(file);
    // Nothing tells whether it is the same one; what is replaced is neither proved nor signed by anybody.
    if (force && opened.end === undefined && wanted.sha256 === undefined) return undefined;
    const found = await judge(source, opened, wanted);
    if (typeof found !== 'string') return found;
    if (force) return undefined;
    if ((await isThere(partial)) || !(await isBeginning(source, opened, signal))) throw exists(file, found);
  }
  // What is refused under the other name is refused before it loses its own.
  const left = await openLeft(file, 'write');
  await left?.close();
  try {
    await rename(file, partial);
  } catch (error) {
    throw fileError(`go on with ${file}`, error);
  }
  return undefined;
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

function exists(file: string, why: string): CurlewError {
  const what = 'a file of this name is there, and is not the one to fetch';
  return new CurlewError('FILE_EXISTS', `pull ${file}: ${what}: ${why}`, {
    hint: 'name another file, or replace it with --force',
  });
}

/** A text says why the file is another one. */
async function judge(
  source: RangeSource,
  opened: OpenPlace,
  { sha256, check, report, signal }: Wanted,
): Promise<Settled | string> {
  const { object, end } = opened;
  if (source.size !== object.size) return `it has ${source.size} bytes, not ${object.size}`;
  if (sha256 !== undefined && (await digestAsStep(source, { report, signal })) !== sha256)
    return 'it has another sha256';
  if (sha256 !== undefined && end === undefined && check === undefined) return { contents: undefined, compared: true };
  let own: ArchiveEnd;
  try {
    own = await readArchiveEnd(source, { signal });
    const { tocDigest } = own.index;
    if (end !== undefined && tocDigest !== end.index.tocDigest) {
      return `its contents are ${tocDigest}, not ${end.index.tocDigest}`;
    }
    await proveThere(source, { report, signal });
  } catch (error) {
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) {
      return 'it is damaged, or no bundle and no package';
    }
    throw error;
  }
  await check?.(own.toc, opened);
  // A signature that is asked for at the place is of what the place has.
  const compared = [end, sha256, check].some((one) => one !== undefined);
  return { contents: own.index.tocDigest, compared };
}

async function proveThere(source: RangeSource, { report, signal }: Pick<Wanted, 'report' | 'signal'>): Promise<void> {
  const id = 'check';
  const onBytes = (bytes: number): void => report({ type: 'step-progress', id, bytes });
  await reportStep(
    report,
    { id, title: `check ${basename(source.name)}, which is there`, bytes: source.size },
    async () => verifyArchive(source, { onBytes, signal }),
    () => 'whole',
  );
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
