/**
 * Compares the files below a folder with those of a package. Scripts, specs and small files are read each time. A large file is
 * trusted without reading if its metadata is the same as when its bytes were verified.
 */
import { createHash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, errnoOf, fileError, ifExists } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { osFolderOf } from '../../core/omitted.ts';
import type { PackageFile } from '../../core/package.ts';
import { fileMark } from '../../platform/files/file-mark.ts';
import { isStranger } from '../../platform/files/state-file.ts';
import type { Difference, FileDifference } from '../plan/run-plan.ts';
import type { PlacedFile } from './placed-record.ts';

export interface ComparedFiles {
  readonly differences: readonly FileDifference[];
  /** Files without harmful differences. A mark is set if the bytes were verified and the file may be trusted the next time. */
  readonly files: readonly PlacedFile[];
}

interface JudgeOptions extends Cancellable {
  /** Files whose bytes were verified, by path; default: none. */
  readonly known?: ReadonlyMap<string, PlacedFile> | undefined;
  /** Read everything, even after a difference was found. */
  readonly thorough: boolean;
  /** Receives progress if reading takes more than a second. */
  readonly progress?: { readonly report: Report; readonly title: string } | undefined;
}

const AT_ONCE = 8;
/** Files larger than `SMALL`, and scripts, specs and programs larger than `LARGE`, are trusted by their marks. */
const SMALL = 1 << 20;
const LARGE = 64 << 20;
const TEXT = /\.(?:sh|bash|ya?ml|json|toml|conf|service|tmpl|tpl|py|pl|lua|awk|sed)$/i;
/** Changes within the granularity of a file system's clock do not show in a mark. */
const GRAIN_MS = 2000;

/** Programs that load images and host packages verify them. A hook may run, source or apply every other file. */
function isReadEachTime({ path, mode, size }: PackageFile): boolean {
  if (path.startsWith('images/') || osFolderOf(path) !== undefined) return false;
  return size <= (mode === 0o755 || TEXT.test(path) ? LARGE : SMALL);
}

/**
 * Compares files below `folder` with the index of a package; other files there are ignored. Folders are checked, too: if other
 * users can write to a folder, they could replace its files at any moment. Follows no links, changes nothing, never blocks.
 */
export async function compareFiles(
  folder: string,
  wanted: readonly PackageFile[],
  { known = new Map(), thorough, progress, signal }: JudgeOptions,
): Promise<ComparedFiles> {
  const { folders, looks } = await lookOver(folder, wanted, signal);
  const isWrong = folders.length > 0 || looks.some(({ what }) => what.some((one) => one !== 'mode'));
  if (isWrong && !thorough) return { differences: [...folders, ...differing(wanted, looks)], files: [] };
  const rows = wanted.map((file, at): Row => {
    const look = looks[at] ?? MISSING;
    return { file, look, path: join(folder, file.path), isKnown: isKnown(file, look, known.get(file.path)) };
  });
  const judged = await readRows(rows, progress, signal);
  const differences = differing(
    wanted,
    judged.map(({ look }) => look),
  );
  const wrong = new Set(differences.filter(({ harmless }) => !harmless).map(({ path }) => path));
  const files = wanted.map((file, at): PlacedFile => ({ ...file, mark: judged[at]?.mark }));
  return { differences: [...folders, ...differences], files: files.filter(({ path }) => !wrong.has(path)) };
}

interface Looks {
  readonly folders: readonly FileDifference[];
  /** The result for each file, in their order. */
  readonly looks: readonly Look[];
}

/** Compares everything except the bytes. */
async function lookOver(folder: string, wanted: readonly PackageFile[], signal: AbortSignal): Promise<Looks> {
  const folders = await compareFolders(folder, wanted, signal);
  const lost = folders.filter(({ what }) => what.includes('missing') || what.includes('type'));
  const isLost = (path: string): boolean => lost.some((one) => one.path === './' || path.startsWith(one.path));
  const looks = await mapLimited(
    wanted,
    async (file) => (isLost(file.path) ? MISSING : lookAt(join(folder, file.path), file)),
    { width: AT_ONCE, signal },
  );
  return { folders, looks };
}

/** True if other users could replace one of these verified files, or one is not a regular file. */
export async function areExposed(
  folder: string,
  files: readonly PackageFile[],
  { signal }: { readonly signal: AbortSignal },
): Promise<boolean> {
  const { folders, looks } = await lookOver(folder, files, signal);
  return folders.length > 0 || differing(files, looks).some(({ harmless }) => !harmless);
}

interface Row {
  readonly file: PackageFile;
  readonly look: Look;
  readonly path: string;
  readonly isKnown: boolean;
}

interface Proof {
  readonly look: Look;
  /** Mark that identifies the file the next time. */
  readonly mark: string | undefined;
}

/** Reading fewer bytes takes less than a second and is not reported. */
export const UNREPORTED: number = 256 << 20;

async function readRows(
  rows: readonly Row[],
  progress: JudgeOptions['progress'],
  signal: AbortSignal,
): Promise<readonly Proof[]> {
  const total = rows.reduce((sum, { file, isKnown }) => (isKnown ? sum : sum + file.size), 0);
  let done = 0;
  const read = async (onBytes?: (bytes: number) => void): Promise<readonly Proof[]> =>
    mapLimited(
      rows,
      async (row, within) => proveBytes(row, { ...within, onBytes: (more) => onBytes?.((done += more)) }),
      { width: AT_ONCE, signal },
    );
  if (progress === undefined || total < UNREPORTED) return read();
  const { report, title } = progress;
  return reportStep(
    report,
    { id: title, title, bytes: total },
    async () => read((bytes) => report({ type: 'step-progress', id: title, bytes })),
    () => 'read',
  );
}

/** True if the metadata is the same as when the bytes were verified. Never true for scripts. */
function isKnown(file: PackageFile, { mark }: Look, known: PlacedFile | undefined): boolean {
  return !isReadEachTime(file) && mark !== undefined && known?.mark === mark && known.digest === file.digest;
}

interface Look {
  readonly what: readonly Difference[];
  readonly mark: string | undefined;
  readonly writable: boolean;
}

const MISSING: Look = { what: ['missing'], mark: undefined, writable: false };
/** Set-ID bits, and write bits of group and others. */
const HARMFUL = 0o7022;

async function lookAt(path: string, { mode, size }: PackageFile): Promise<Look> {
  const stats = await statOf(path);
  if (stats === undefined) return MISSING;
  if (!stats.isFile()) return { what: ['type'], mark: undefined, writable: false };
  const bits = Number(stats.mode) & 0o7777;
  const what: Difference[] = [];
  if (isStranger(Number(stats.uid))) what.push('owner');
  if (bits !== mode) what.push('mode');
  if (stats.size !== BigInt(size)) what.push('size');
  return { what, mark: fileMark(stats), writable: (bits & HARMFUL) !== 0 };
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  return ifExists(`inspect ${path}`, lstat(path, { bigint: true }));
}

function differing(wanted: readonly PackageFile[], looks: readonly Look[]): readonly FileDifference[] {
  return wanted.flatMap(({ path }, at) => {
    const { what = [], writable = false } = looks[at] ?? {};
    if (what.length === 0) return [];
    return [{ path, what, harmless: what.every((one) => one === 'mode') && !writable }];
  });
}

/** Checks the package's folder and every folder above a file: a directory, our own, not writable by other users. */
async function compareFolders(
  folder: string,
  wanted: readonly PackageFile[],
  signal: AbortSignal,
): Promise<readonly FileDifference[]> {
  const names = new Set(['']);
  for (const { path } of wanted) {
    for (let name = dirname(path); name !== '.' && !names.has(name); name = dirname(name)) names.add(name);
  }
  const differences: FileDifference[] = [];
  for (const name of [...names].toSorted()) {
    signal.throwIfAborted();
    const what = folderProblems(await statOf(join(folder, name)));
    if (what.length > 0) differences.push({ path: name === '' ? './' : `${name}/`, what, harmless: false });
  }
  return differences;
}

/** Why the files of a folder cannot be trusted: other users could replace them at any moment. */
export function folderProblems(stats: BigIntStats | undefined): readonly Difference[] {
  if (stats === undefined) return ['missing'];
  if (!stats.isDirectory()) return ['type'];
  const what: Difference[] = isStranger(Number(stats.uid)) ? ['owner'] : [];
  // Rights that an ACL grants to single users show as group bits.
  if ((Number(stats.mode) & 0o022) !== 0) what.push('mode');
  return what;
}

interface ReadOptions extends Cancellable {
  /** Called with the number of bytes of each chunk. */
  readonly onBytes: (more: number) => void;
}

/** Reads a file, unless it is known or its size differs. */
async function proveBytes({ file, look, path, isKnown }: Row, options: ReadOptions): Promise<Proof> {
  const { mark, what } = look;
  if (isKnown) return { look, mark };
  if (mark === undefined || what.includes('size')) return { look, mark: undefined };
  const always = isReadEachTime(file);
  const began = Date.now();
  const read = await readBytes(path, file.size, { ...options, synced: !always });
  if (read?.digest !== file.digest) return { look: { ...look, what: [...what, 'digest'] }, mark: undefined };
  // The file that was read is the one whose metadata was compared, and a change within the same clock tick would show.
  const isSettled = read.mark === mark && read.changedMs < began - GRAIN_MS;
  return { look, mark: always || !isSettled ? undefined : mark };
}

async function readBytes(
  path: string,
  size: number,
  { synced, onBytes, signal }: ReadOptions & { readonly synced: boolean },
): Promise<{ readonly digest: Digest; readonly mark: string; readonly changedMs: number } | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return undefined;
    // Without a sync, writes through an existing memory mapping could continue without a change of any time.
    if (synced) await file.sync();
    const hash = createHash('sha256');
    const memory = Buffer.allocUnsafeSlow(Math.min(1 << 20, size + 1));
    for (let done = 0; ;) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(memory, 0, memory.byteLength, done);
      done += bytesRead;
      if (done > size) return undefined;
      if (bytesRead === 0) break;
      hash.update(memory.subarray(0, bytesRead));
      onBytes(bytesRead);
    }
    const after = await file.stat({ bigint: true });
    return { digest: `sha256:${hash.digest('hex')}`, mark: fileMark(after), changedMs: Number(after.ctimeMs) };
  } catch (error) {
    signal.throwIfAborted();
    // It was replaced since the lstat.
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO'].includes(errnoOf(error) ?? '')) return undefined;
    throw error instanceof CurlewError ? error : fileError(`read ${path}`, error);
  }
}

/** Present marks of files whose bytes were verified when they were written. */
export async function markFiles(
  folder: string,
  files: readonly PackageFile[],
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly PlacedFile[]> {
  const mark = async (file: PackageFile): Promise<PlacedFile> => {
    const look = isReadEachTime(file) ? MISSING : await lookAt(join(folder, file.path), file);
    return { ...file, mark: look.what.length === 0 ? look.mark : undefined };
  };
  return mapLimited(files, mark, { width: AT_ONCE, signal });
}
