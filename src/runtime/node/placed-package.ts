/** Packages whose files lie in the install folder: which of them a run may use as they are, and which it extracts again. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { ADDON_JSON, nodePath, OMITTED_JSON } from '../../core/layout.ts';
import { OMITTED_JSON_LIMIT } from '../../core/omitted.ts';
import { ADDON_JSON_LIMIT, type PackageFile } from '../../core/package.ts';
import type { Report } from '../../core/events.ts';
import { formatRef, type AddonRef } from '../../core/ref.ts';
import { folderProblems, judgeFiles, markFiles, type FileDifference } from './placed-files.ts';
import { readPlacedRecord, writePlacedRecord, type PlacedRecord } from './placed-record.ts';
import type { ExtractedRecord, Records } from './records.ts';
import { checkedAddon, type SourcePackage } from './source.ts';
import { changed, readVerified } from './verified-file.ts';

interface JudgeOptions {
  /** Who is told of a read that takes a while. */
  readonly report?: Report | undefined;
  readonly signal: AbortSignal;
}

export interface PlacedState {
  /** Of the package; undefined unless all its files lie in place, with the bytes that it says. */
  readonly digest: Digest | undefined;
  /** Why they do not, where there is something of it. */
  readonly differences: readonly FileDifference[];
  /** What was found out, and is to be kept by {@link keepPlaced}; undefined when it is known already. */
  readonly found: PlacedRecord | undefined;
}

/** Nothing is in its place, or that has not been checked. */
export const NOTHING: PlacedState = { digest: undefined, differences: [], found: undefined };

/** Judges what lies in the place of a package by the package's own index. Nothing is changed. */
export async function judgePlaced(
  directory: string,
  { ref, addon: { digest }, files }: Pick<SourcePackage, 'ref' | 'addon' | 'files'>,
  { report, signal }: JudgeOptions,
): Promise<PlacedState> {
  const path = nodePath.addon(ref);
  const record = await readPlacedRecord(directory, path);
  if (record !== undefined && record.digest !== digest) return NOTHING;
  const known = new Map(record?.files.map((file) => [file.path, file]));
  // What was left out of the package here need not have been left out of the one that lies there.
  const own = files.filter((file) => file.path !== OMITTED_JSON);
  const note = known.get(OMITTED_JSON);
  const wanted: readonly PackageFile[] = note === undefined ? own : [...own, note];
  const progress = report && { report, title: `prove ${formatRef(ref)} in place` };
  const judged = await judgeFiles(join(directory, path), wanted, { known, thorough: false, progress, signal });
  const wrong = judged.differences.filter(({ harmless }) => !harmless);
  if (wrong.some(({ path: one, what }) => one === './' && what.includes('missing'))) return NOTHING;
  if (wrong.length > 0) return { digest: undefined, differences: wrong, found: undefined };
  const now = new Map([...known, ...judged.files.map((file) => [file.path, file] as const)]);
  const isKnown = judged.files.every((file) => {
    const before = known.get(file.path);
    return before?.digest === file.digest && before.mark === file.mark;
  });
  return { digest, differences: [], found: isKnown ? undefined : { digest, files: [...now.values()] } };
}

/** Keeps what was found out of a package in place, so that the next run need not read all of it. */
export async function keepPlaced(directory: string, ref: AddonRef, { found }: PlacedState): Promise<void> {
  if (found === undefined) return;
  try {
    await writePlacedRecord(directory, nodePath.addon(ref), found);
  } catch (error) {
    throw fileError(`record the files of ${nodePath.addon(ref)}`, error);
  }
}

/** To be called when a package was extracted, each byte proved, and lies in its place. */
export async function recordPlaced(
  directory: string,
  { ref, addon: { digest }, files }: Pick<SourcePackage, 'ref' | 'addon' | 'files'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const marked = await markFiles(join(directory, nodePath.addon(ref)), files, { signal });
  await keepPlaced(directory, ref, { digest, differences: [], found: { digest, files: marked } });
}

/** Digest of the package that was put in this place last; what became of its files since is not looked at. */
export async function recordedDigest(directory: string, ref: AddonRef): Promise<Digest | undefined> {
  return (await readPlacedRecord(directory, nodePath.addon(ref)))?.digest;
}

/** Digest of the package that lies in the place of this one, judged by what was recorded of it; undefined when there is none. */
export async function placedDigest(
  directory: string,
  ref: AddonRef,
  { signal }: { readonly signal: AbortSignal },
): Promise<Digest | undefined> {
  const path = nodePath.addon(ref);
  const record = await readPlacedRecord(directory, path);
  if (record === undefined) return undefined;
  const known = new Map(record.files.map((file) => [file.path, file]));
  const { differences } = await judgeFiles(join(directory, path), record.files, { known, thorough: false, signal });
  return differences.every(({ harmless }) => harmless) ? record.digest : undefined;
}

/**
 * Whether the package that an add-on was applied with lies in its place. Undefined when nothing is recorded of its files, as on a
 * node of a version that kept no such records: a run proves them, or extracts them again.
 */
export async function isPlaced(
  directory: string,
  ref: AddonRef,
  digest: Digest | undefined,
  options: { readonly signal: AbortSignal },
): Promise<boolean | undefined> {
  if (digest !== undefined && (await recordedDigest(directory, ref)) === undefined) return undefined;
  return (await placedDigest(directory, ref, options)) === digest;
}

/** What is known of a package that lies in place, without its archive. */
export type PlacedPackage = Pick<SourcePackage, 'ref' | 'addon' | 'files' | 'omitted' | 'read'>;

/**
 * The package of this digest that lies in place, as it was recorded: the record proves itself by the digest, and only what is
 * read of the files is compared with it. Undefined when the records do not vouch for it.
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
    if (file.size > limit) throw new CurlewError('PACKAGE_INVALID', `${folder}: ${path} is larger than ${limit} bytes`);
    const parts: Uint8Array[] = [];
    for await (const part of readVerified([join(folder, path)], file, signal)) parts.push(part);
    return Buffer.concat(parts).toString('utf8');
  };
  const texts = {
    addon: (await text(ADDON_JSON, ADDON_JSON_LIMIT)) ?? '',
    omitted: await text(OMITTED_JSON, OMITTED_JSON_LIMIT),
  };
  const read: SourcePackage['read'] = (path, options) => {
    const file = record.files.find((one) => one.path === path);
    if (file === undefined) throw new CurlewError('NOT_FOUND', `read ${join(folder, path)}: no file of the package`);
    return readVerified([join(folder, path)], file, options.signal);
  };
  const checked = checkedAddon(texts, ref, record.files, folder);
  return checked.addon.digest === digest ? { ref, ...checked, files: record.files, read } : undefined;
}

/**
 * The same, for those who only want to know what the package says of itself: whether it lies there as a whole is not looked
 * at. Undefined also when that cannot be read any more.
 */
export async function describedPackage(
  directory: string,
  ref: AddonRef,
  digest: Digest,
  { signal }: { readonly signal: AbortSignal },
): Promise<PlacedPackage | undefined> {
  return recordedPackage(directory, ref, digest, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    return undefined;
  });
}

/** The whole package of this digest, when it lies in place and the records say so; undefined when it does not, or only in part. */
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
    const found = await recordedPackage(directory, ref, digest, { signal });
    if (found === undefined || found.omitted.length > 0) return undefined;
    return (await judgePlaced(directory, found, { signal })).digest === digest ? found : undefined;
  } catch {
    signal.throwIfAborted();
    // Whatever it is, the package is fetched as if there were nothing.
    return undefined;
  }
}

/**
 * The recorded package in this place, whose images and addon.json are proved; undefined when nothing is recorded of it.
 * `DIGEST_MISMATCH` when they differ from what was recorded.
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
  const { differences } = await judgeFiles(join(directory, path), wanted, { known, thorough: false, signal });
  const wrong = differences.find(({ harmless }) => !harmless);
  if (wrong !== undefined) throw changed(join(directory, path, wrong.path));
  return recordedPackage(directory, ref, record.digest, { signal });
}

/** Folders of ours whose contents are run or believed. */
const FOLDERS = ['.', 'addons', 'packages', 'previous', 'placed', 'fetched', 'runs', 'kustomize', 'assets', 'bin'];

/**
 * Judged before anything below an install folder is believed: whoever can write to one of its own folders could exchange files
 * after they were proved, so that such a folder is `FILE_UNUSABLE`. What is missing is made by a run.
 */
export async function requireOwnFolders(directory: string, refs: readonly AddonRef[]): Promise<void> {
  const names = refs.map(({ tree, name }) => `${tree}/${name}`);
  for (const name of new Set([...FOLDERS, ...names])) {
    const path = join(directory, name);
    const found = await stat(path, { bigint: true }).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
      throw fileError(`look at ${path}`, error);
    });
    const problems = found?.isDirectory() === true ? folderProblems(found) : [];
    if (problems.length === 0) continue;
    const what = problems.includes('owner') ? `it belongs to user ${found?.uid}` : 'others may write to it';
    throw new CurlewError('FILE_UNUSABLE', `use ${path}: ${what}, and could exchange what a run has proved`, {
      hint: `see who did that; then run: chown root:root ${path} && chmod 755 ${path}`,
    });
  }
}
