/**
 * `addon.omitted.json` next to an `addon.json`: the files of a package that a bundle leaves out, so that the remaining files
 * still prove the package's identity. Only whole folders of operating systems can be left out. Pure; used to plan bundles,
 * and read by nodes.
 */
import { canonicalJson, isDigest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { isSize, parseObject } from './json.ts';
import { OMITTED_JSON, pathProblem } from './layout.ts';
import { isOsId, OS_IDS, type OsId } from './os.ts';
import type { FileMode, PackageFile } from './package.ts';
import { compareText } from './ref.ts';

const OMITTED_FORMAT = 1;
/** Size limit of an `addon.omitted.json`, in bytes. */
export const OMITTED_JSON_LIMIT: number = 8 << 20;

export interface Omitted {
  /** Sorted by path under the package's prefix, in code units; never empty. */
  readonly files: readonly PackageFile[];
  /** The folders that contain them, in the order of the table of systems. */
  readonly folders: readonly OsId[];
  /** Unpacked size. */
  readonly bytes: number;
}

/** The operating system's folder that contains a file of a package. */
export function osFolderOf(path: string): OsId | undefined {
  const [folder = '', below] = path.split('/', 2);
  return below !== undefined && isOsId(folder) ? folder : undefined;
}

/** Canonical text; equal for equal files in any order. */
export function formatOmitted(files: readonly PackageFile[]): string {
  const rows = files
    .map(({ path, mode, size, digest }) => [path, mode, size, digest] as const)
    .toSorted(([a], [b]) => compareText(a, b));
  return `${canonicalJson({ files: rows, format: OMITTED_FORMAT })}\n`;
}

/** Reads an `addon.omitted.json` from outside; `from` names the package for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseOmitted(text: string, from: string): Omitted {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: ${OMITTED_JSON}: ${what}`, {
      hint: 'build the bundle again',
      cause,
    });
  const { format, files: rows } = parseObject(text, bad);
  if (format !== OMITTED_FORMAT) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${from}: ${OMITTED_JSON} has the unsupported format ${JSON.stringify(format)}`,
      {
        hint: 'a newer curlew built this bundle; use the one inside it',
      },
    );
  }
  if (!Array.isArray(rows) || rows.length === 0) throw bad('files');
  let before = '';
  const files = rows.map((row: unknown, at): PackageFile => {
    const file = fileOf(row);
    if (file === undefined) throw bad(`file ${at + 1} is not valid`);
    if (osFolderOf(file.path) === undefined)
      throw bad(`${JSON.stringify(file.path)} is outside the operating system folders`);
    if (compareText(before, file.path) >= 0) throw bad(`file ${at + 1} is repeated or out of order`);
    before = file.path;
    return file;
  });
  if (formatOmitted(files) !== text) throw bad('not canonical');
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (!Number.isSafeInteger(bytes)) throw bad('sizes');
  const folders = new Set(files.map(({ path }) => osFolderOf(path)));
  return { files, folders: OS_IDS.filter((id) => folders.has(id)), bytes };
}

function fileOf(row: unknown): PackageFile | undefined {
  if (!Array.isArray(row) || row.length !== 4) return undefined;
  const [path, mode, size, digest] = row as readonly unknown[];
  if (typeof path !== 'string' || pathProblem(path) !== undefined) return undefined;
  if (!isFileMode(mode) || !isSize(size) || !isDigest(digest)) return undefined;
  return { path, mode, size, digest };
}

function isFileMode(value: unknown): value is FileMode {
  return value === 0o644 || value === 0o755;
}
