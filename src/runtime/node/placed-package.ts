/** Packages in the install folder: which of them a run may use as they are, and which it extracts again. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { wholeFile } from '../../core/bytes.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError, ifExists, requireRefusal } from '../../core/errors.ts';
import { ADDON_JSON, nodePath, OMITTED_JSON } from '../../core/layout.ts';
import { OMITTED_JSON_LIMIT } from '../../core/omitted.ts';
import { ADDON_JSON_LIMIT, type PackageFile } from '../../core/package.ts';
import type { Report } from '../../core/events.ts';
import { formatRef, type AddonRef } from '../../core/ref.ts';
import { folderProblems, compareFiles, markFiles } from './placed-files.ts';
import type { FileDifference } from '../plan/run-plan.ts';
import { readPlacedRecord, writePlacedRecord, type PlacedRecord } from './placed-record.ts';
import type { ExtractedRecord, Records } from '../plan/records.ts';
import type { SourcePackage } from './source.ts';
import { wrongBytes, readVerified } from './verified-file.ts';

interface JudgeOptions {
  /** Receives progress of reads that take more than a second. */
  readonly report?: Report | undefined;
  readonly signal: AbortSignal;
}

export interface PlacedState {
  /** Digest of the package; undefined unless all its files are in place with the right bytes. */
  readonly digest: Digest | undefined;
  /** Differences of the files in place, if there are any files. */
  readonly differences: readonly FileDifference[];
  /** New record for {@link keepPlaced}; undefined if the present one is up to date. */
  readonly record: PlacedRecord | undefined;
}

/** No package is in the place, or it has not been checked. */
export const NOT_PLACED: PlacedState = { digest: undefined, differences: [], record: undefined };

/** Compares the files in place with the package's own index. Changes nothing. */
export async function checkPlaced(
  directory: string,
  { ref, addon: { digest }, files }: Pick<SourcePackage, 'ref' | 'addon' | 'files'>,
  { report, signal }: JudgeOptions,
): Promise<PlacedState> {
  const path = nodePath.addon(ref);
  const record = await readPlacedRecord(directory, path);
  if (record !== undefined && record.digest !== digest) return NOT_PLACED;
  const known = new Map(record?.files.map((file) => [file.path, file]));
  // Folders that this package omits may be present in place.
  const own = files.filter((file) => file.path !== OMITTED_JSON);
  const note = known.get(OMITTED_JSON);
  const wanted: readonly PackageFile[] = note === undefined ? own : [...own, note];
  const progress = report && { report, title: `verify ${formatRef(ref)} in place` };
  const judged = await compareFiles(join(directory, path), wanted, { known, thorough: false, progress, signal });
  const wrong = judged.differences.filter(({ harmless }) => !harmless);
  if (wrong.some(({ path: one, what }) => one === './' && what.includes('missing'))) return NOT_PLACED;
  if (wrong.length > 0) return { digest: undefined, differences: wrong, record: undefined };
  const now = new Map([...known, ...judged.files.map((file) => [file.path, file] as const)]);
  const isKnown = judged.files.every((file) => {
    const before = known.get(file.path);
    return before?.digest === file.digest && before.mark === file.mark;
  });
  return { digest, differences: [], record: isKnown ? undefined : { digest, files: [...now.values()] } };
}

/** Writes the new record of a package in place, so that the next run need not read all of it. */
export async function keepPlaced(directory: string, ref: AddonRef, { record }: PlacedState): Promise<void> {
  if (record === undefined) return;
  try {
    await writePlacedRecord(directory, nodePath.addon(ref), record);
  } catch (error) {
    throw fileError(`record the files of ${nodePath.addon(ref)}`, error);
  }
}

/** Records a package that was extracted, verified and moved into place. */
export async function recordPlaced(
  directory: string,
  { ref, addon: { digest }, files }: Pick<SourcePackage, 'ref' | 'addon' | 'files'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const marked = await markFiles(join(directory, nodePath.addon(ref)), files, { signal });
  await keepPlaced(directory, ref, { digest, differences: [], record: { digest, files: marked } });
}

/** Recorded digest of the package in this place. Its files are not checked. */
export async function recordedDigest(directory: string, ref: AddonRef): Promise<Digest | undefined> {
  return (await readPlacedRecord(directory, nodePath.addon(ref)))?.digest;
}

/** Digest of the package in this place, whose files are compared with its record; undefined if there is none or files differ. */
export async function placedDigest(
  directory: string,
  ref: AddonRef,
  { signal }: { readonly signal: AbortSignal },
): Promise<Digest | undefined> {
  const record = await readPlacedRecord(directory, nodePath.addon(ref));
  return record && digestIfUnchanged(directory, ref, record, { signal });
}

async function digestIfUnchanged(
  directory: string,
  ref: AddonRef,
  record: PlacedRecord,
  { signal }: { readonly signal: AbortSignal },
): Promise<Digest | undefined> {
  const known = new Map(record.files.map((file) => [file.path, file]));
  const folder = join(directory, nodePath.addon(ref));
  const { differences } = await compareFiles(folder, record.files, { known, thorough: false, signal });
  return differences.every(({ harmless }) => harmless) ? record.digest : undefined;
}

/**
 * True if the package that was applied is in place. Undefined if its files are not recorded, as on nodes of versions without
 * such records: the next run verifies them or extracts them again.
 */
export async function isPlaced(
  directory: string,
  ref: AddonRef,
  digest: Digest | undefined,
  options: { readonly signal: AbortSignal },
): Promise<boolean | undefined> {
  const record = await readPlacedRecord(directory, nodePath.addon(ref));
  if (record === undefined) return digest === undefined ? true : undefined;
  return (await digestIfUnchanged(directory, ref, record, options)) === digest;
}

/** A package in place, without its archive. */
export type PlacedPackage = Pick<SourcePackage, 'ref' | 'addon' | 'files' | 'omitted' | 'read'>;

/**
 * The recorded package with this digest. The digest verifies the record itself; files are verified only when they are read.
 * Undefined if there is no record of this package.
 */
export async function recordedPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { signal }: { readonly signal: AbortSignal },
): Promise<PlacedPackage | undefined> {
  const folder = join(directory, nodePath.addon(ref));
  const record = await readPlacedRecord(directory, nodePath.addon(ref));
  if (record?.digest !== digest) return undefined;
  const text = async (path: string, limit: number): Promise<string | undefined> => {
    const file = record.files.find((one) => one.path === path);
    if (file === undefined) return undefined;
    const bytes = await wholeFile(folder, file, limit, () => readVerified([join(folder, path)], file, signal));
    return bytes.toString('utf8');
  };
  const texts = {
    addon: (await text(ADDON_JSON, ADDON_JSON_LIMIT)) ?? '',
    omitted: await text(OMITTED_JSON, OMITTED_JSON_LIMIT),
  };
  const read: SourcePackage['read'] = (path, options) => {
    const file = record.files.find((one) => one.path === path);
    if (file === undefined)
      throw new CurlewError('NOT_FOUND', `cannot read ${join(folder, path)}: not a file of the package`);
    return readVerified([join(folder, path)], file, options.signal);
  };
  const { checkedAddon } = await import('./source.ts');
  const checked = checkedAddon(texts, ref, record.files, folder);
  return checked.addon.digest === digest ? { ref, ...checked, files: record.files, read } : undefined;
}

/**
 * Like {@link recordedPackage}, for callers that need only the package's metadata. Also undefined if it cannot be read or does
 * not match its digest.
 */
export async function describedPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { signal }: { readonly signal: AbortSignal },
): Promise<PlacedPackage | undefined> {
  return recordedPackage(directory, ref, digest, { signal }).catch((error: unknown) => {
    requireRefusal(error, signal);
    return undefined;
  });
}

/** The package with this digest if it is recorded and in place, complete and verified; otherwise undefined. */
export async function placedPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { extracted, signal }: Pick<Records, 'extracted'> & { readonly signal: AbortSignal },
): Promise<PlacedPackage | undefined> {
  const { tree, name, version } = ref;
  const isThis = (one: ExtractedRecord): boolean =>
    one.tree === tree && one.name === name && one.version === version && one.digest === digest;
  if (!extracted.some(isThis)) return undefined;
  try {
    const recorded = await recordedPackage(directory, ref, digest, { signal });
    if (recorded === undefined || recorded.omitted.length > 0) return undefined;
    return (await checkPlaced(directory, recorded, { signal })).digest === digest ? recorded : undefined;
  } catch {
    signal.throwIfAborted();
    // Whatever the error is, the package is fetched again.
    return undefined;
  }
}

/**
 * The recorded package in this place after its images and addon.json are verified; undefined if nothing is recorded.
 * `DIGEST_MISMATCH` if they differ from the record.
 */
export async function requireImages(
  directory: string,
  ref: AddonRef,
  { signal }: { readonly signal: AbortSignal },
): Promise<PlacedPackage | undefined> {
  const path = nodePath.addon(ref);
  const record = await readPlacedRecord(directory, path);
  if (record === undefined) return undefined;
  const known = new Map(record.files.map((file) => [file.path, file]));
  const wanted = record.files.filter((file) => file.path === ADDON_JSON || file.path.startsWith('images/'));
  const { differences } = await compareFiles(join(directory, path), wanted, { known, thorough: false, signal });
  const wrong = differences.find(({ harmless }) => !harmless);
  if (wrong !== undefined) throw wrongBytes(join(directory, path, wrong.path));
  return recordedPackage(directory, ref, record.digest, { signal });
}

/** Folders of an install folder whose contents are run or trusted. */
const FOLDERS = ['.', 'addons', 'packages', 'previous', 'placed', 'fetched', 'runs', 'kustomize', 'assets', 'bin'];

/**
 * Checks the folders of an install folder before any file in them is trusted. `FILE_UNUSABLE` if another user can write to one:
 * that user could replace files after they were verified. Missing folders are fine, a run creates them.
 */
export async function requireOwnFolders(directory: string, refs: readonly AddonRef[]): Promise<void> {
  const names = refs.map(({ tree, name }) => `${tree}/${name}`);
  for (const name of new Set([...FOLDERS, ...names])) {
    const path = join(directory, name);
    const stats = await ifExists(`inspect ${path}`, stat(path, { bigint: true }));
    const problems = stats?.isDirectory() === true ? folderProblems(stats) : [];
    if (problems.length === 0) continue;
    const what = problems.includes('owner') ? `it belongs to user ${stats?.uid}` : 'other users can write to it';
    throw new CurlewError(
      'FILE_UNUSABLE',
      `cannot use ${path}: ${what}, so files could be replaced after they were verified`,
      { hint: `find out who changed it; then run: chown root:root ${path} && chmod 755 ${path}` },
    );
  }
}
