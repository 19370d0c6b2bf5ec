/**
 * `addon.omitted.json` beside an `addon.json`: what a bundle left out of a package, so that the rest still proves the
 * package's identity. Only whole folders of operating systems can be left out. Pure; bundles are planned with it, nodes
 * read it.
 */
import { canonicalJson, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { parseObject } from './json.ts';
import { OMITTED_JSON, pathProblem } from './layout.ts';
import { isOsId, OS_IDS, type OsId } from './os.ts';
import type { FileMode, PackageFile } from './package.ts';
import { compareText } from './ref.ts';

const OMITTED_FORMAT = 1;
/** Most bytes of an `addon.omitted.json` that are read. */
export const OMITTED_JSON_LIMIT: number = 8 << 20;

export interface Omitted {
  /** By path below the package's prefix, in code units; never empty. */
  readonly files: readonly PackageFile[];
  /** The folders that they are all of, in the order of the table of systems. */
  readonly folders: readonly OsId[];
  /** Unpacked. */
  readonly bytes: number;
}

/** The folder of an operating system that a file of a package lies in. */
export function osFolderOf(path: string): OsId | undefined {
  const [folder = '', below] = path.split('/', 2);
  return below !== undefined && isOsId(folder) ? folder : undefined;
}

/** Canonical text; equal for equal files, whatever their order. */
export function formatOmitted(files: readonly PackageFile[]): string {
  const rows = files
    .map(({ path, mode, size, digest }) => [path, mode, size, digest] as const)
    .toSorted(([a], [b]) => compareText(a, b));
  return `${canonicalJson({ files: rows, format: OMITTED_FORMAT })}\n`;
}

/** Reads one from outside; `from` names the package for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseOmitted(text: string, from: string): Omitted {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: ${OMITTED_JSON}: ${what}`, {
      hint: 'make the bundle again',
      cause,
    });
  const { format, files: rows } = parseObject(text, bad);
  if (format !== OMITTED_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: ${OMITTED_JSON} of format ${JSON.stringify(format)} is not known`, {
      hint: 'a newer curlew made this bundle; use the one inside it',
    });
  }
  if (!Array.isArray(rows) || rows.length === 0) throw bad('files');
  let before = '';
  const files = rows.map((row: unknown, at): PackageFile => {
    const file = fileOf(row);
    if (file === undefined) throw bad(`file ${at + 1} is not described`);
    if (osFolderOf(file.path) === undefined) throw bad(`${JSON.stringify(file.path)} is in no folder of a system`);
    if (compareText(before, file.path) >= 0) throw bad(`file ${at + 1} stands twice or out of order`);
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
  if (!isFileMode(mode) || !isSize(size) || !isDigestText(digest)) return undefined;
  return { path, mode, size, digest };
}

function isFileMode(value: unknown): value is FileMode {
  return value === 0o644 || value === 0o755;
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isDigestText(value: unknown): value is Digest {
  return typeof value === 'string' && isDigest(value);
}
