/** A file that already has the name that a transfer writes to. */
import { rename, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { headerMember } from '../../formats/archive/place.ts';
import { openFileSource, readIndex, readRange } from '../../formats/archive/read.ts';
import { sameBytes } from '../../formats/archive/member.ts';
import { verifyArchive } from '../../formats/archive/verify.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError, ifExists, succeeds } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { openLeft } from '../../platform/files/left-file.ts';
import { readArchiveEnd, type ArchiveEnd, type OpenPlace } from './open-place.ts';
import { openPartial, pathsBeside, type FinishOptions } from './partial-file.ts';

export interface ExistingOptions extends Reporting, FinishOptions {
  readonly sha256: Digest | undefined;
  readonly check?: ((toc: Uint8Array, from: OpenPlace) => Promise<void>) | undefined;
}

/** A file that is complete. */
interface Complete {
  /** Digest of its table of contents; undefined if it has none, or none was read. */
  readonly contents: Digest | undefined;
  /** False if the place reports nothing but a length, which is the same. */
  readonly compared: boolean;
}

/**
 * A file of this sha256 needs no place: it already has its name, or a run was killed before it could give it. `size` is that
 * of the file, if it is known. Undefined if the file has to be fetched; then nothing has changed.
 */
export async function completeHere(
  file: string,
  { sha256, size }: { readonly sha256: Digest; readonly size: number | undefined },
  options: Pick<ExistingOptions, 'force' | 'isPrivate' | 'report' | 'signal'>,
): Promise<{ readonly size: number; readonly contents: Digest | undefined } | undefined> {
  const paths = pathsBeside(file);
  const present = await sizeOf(file);
  if (present !== undefined && (size ?? present) === present) {
    await using source = await openFileSource(file);
    if ((await digestAsStep(source, options)) === sha256) return await endOf(source, options);
  }
  if (size === undefined || (await sizeOf(paths.partial)) !== size) return undefined;
  const identity = { size, contents: undefined, from: '', etag: undefined };
  await using partial = await openPartial(paths, identity, 'all');
  const { source, have } = partial;
  if (!have.has({ offset: 0, end: size }) || (await digestAsStep(source, options)) !== sha256) return undefined;
  const end = await endOf(source, options);
  await partial.finish(options);
  return end;
}

/** Size of a file, and the digest of its table of contents if it has one. */
export async function endOf(
  source: RangeSource,
  options: { readonly signal: AbortSignal },
): Promise<{ readonly size: number; readonly contents: Digest | undefined }> {
  const { size } = source;
  try {
    return { size, contents: (await readIndex(source, options)).tocDigest };
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'PACKAGE_INVALID') throw error;
    return { size, contents: undefined };
  }
}

/**
 * Undefined if the file has to be fetched. The beginning of it, which other programs leave under this name, becomes the partial
 * file. Any other file is `FILE_EXISTS`, unless it may be replaced.
 */
export async function checkExisting(
  file: string,
  opened: OpenPlace,
  options: ExistingOptions,
): Promise<Complete | undefined> {
  const result = await inspectExisting(file, opened, options);
  if (typeof result !== 'number') return result;
  const { partial } = pathsBeside(file);
  // A file that is refused under the other name must keep its own.
  const handle = await openLeft(file, 'write');
  await handle?.close();
  try {
    await rename(file, partial);
  } catch (error) {
    throw fileError(`resume ${file}`, error);
  }
  return undefined;
}

/** {@link checkExisting} without a change; a number is the size of a beginning of the file. */
export async function inspectExisting(
  file: string,
  opened: OpenPlace,
  options: ExistingOptions,
): Promise<Complete | number | undefined> {
  const { signal, force, sha256 } = options;
  if ((await sizeOf(file)) === undefined) return undefined;
  await using source = await openFileSource(file);
  // Nothing shows whether it is the same file; one that is replaced needs neither verification nor a signature.
  if (force && opened.end === undefined && sha256 === undefined) return undefined;
  const result = await compare(source, opened, options);
  if (typeof result !== 'string') return result;
  if (force) return undefined;
  const hasPartial = (await sizeOf(pathsBeside(file).partial)) !== undefined;
  if (hasPartial || !(await isBeginning(source, opened, signal))) throw exists(file, result);
  return source.size;
}

/** `FILE_EXISTS` for a file that is not the one of the sha256. */
export async function requireFreeName(file: string): Promise<void> {
  if ((await sizeOf(file)) !== undefined) throw exists(file, 'it has a different sha256');
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await ifExists(`inspect ${path}`, stat(path)))?.size;
}

function exists(file: string, why: string): CurlewError {
  const what = 'a different file of this name already exists';
  return new CurlewError('FILE_EXISTS', `cannot pull ${file}: ${what}: ${why}`, {
    hint: 'specify another file, or replace it with --force',
  });
}

/** A string is the reason why the file is not the one at the place. */
async function compare(
  source: RangeSource,
  opened: OpenPlace,
  { sha256, check, report, signal }: ExistingOptions,
): Promise<Complete | string> {
  const { object, end } = opened;
  if (source.size !== object.size) return `it has ${source.size} bytes, not ${object.size}`;
  if (sha256 !== undefined && (await digestAsStep(source, { report, signal })) !== sha256)
    return 'it has a different sha256';
  if (sha256 !== undefined && end === undefined && check === undefined) return { contents: undefined, compared: true };
  let own: ArchiveEnd;
  try {
    own = await readArchiveEnd(source, { signal });
    const { tocDigest } = own.index;
    if (end !== undefined && tocDigest !== end.index.tocDigest) {
      return `its contents are ${tocDigest}, not ${end.index.tocDigest}`;
    }
    await verifyExisting(source, { report, signal });
  } catch (error) {
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) {
      return 'it is damaged, or neither a bundle nor a package';
    }
    throw error;
  }
  await check?.(own.toc, opened);
  // A signature at the place is for the file at the place.
  const compared = [end, sha256, check].some((one) => one !== undefined);
  return { contents: own.index.tocDigest, compared };
}

async function verifyExisting(
  source: RangeSource,
  { report, signal }: Pick<ExistingOptions, 'report' | 'signal'>,
): Promise<void> {
  const id = 'check';
  const onBytes = (bytes: number): void => report({ type: 'step-progress', id, bytes });
  await reportStep(
    report,
    { id, title: `check existing ${basename(source.name)}`, bytes: source.size },
    async () => verifyArchive(source, { onBytes, signal }),
    () => 'complete',
  );
}

/** Shorter than the file, begins with the header of its first entry, and is not a complete archive. */
async function isBeginning(source: RangeSource, { object, end }: OpenPlace, signal: AbortSignal): Promise<boolean> {
  const [first] = end?.index.entries ?? [];
  if (first === undefined || source.size >= object.size) return false;
  const header = headerMember(first);
  if (source.size < header.byteLength) return false;
  if (!sameBytes(await readRange(source, 0, header.byteLength, { signal }), header)) return false;
  return !(await succeeds(['PACKAGE_INVALID'], readIndex(source, { signal })));
}
