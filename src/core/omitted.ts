/**
 * `addon.omitted.json` next to an `addon.json`: the files of a package that a bundle leaves out, so that the remaining files
 * still prove the package's identity. Only whole folders of operating systems can be left out. Pure; used to plan bundles,
 * and read by nodes.
 */
import * as v from 'valibot';
import { canonicalJson } from './digest.ts';
import { errorAbout, type CurlewError } from './errors.ts';
import { OMITTED_JSON } from './layout.ts';
import { isOsId, OS_IDS, type OsId } from './os.ts';
import type { PackageFile } from './package.ts';
import { compareText } from './ref.ts';
import { digest, fileMode, readJson, relativePath, size } from './schema.ts';

const OMITTED_FORMAT = 1;
/** Size limit of an `addon.omitted.json`, in bytes. */
export const OMITTED_JSON_LIMIT: number = 8 << 20;

const omittedJson = v.object({
  format: v.literal(OMITTED_FORMAT),
  files: v.pipe(v.array(v.strictTuple([relativePath, fileMode, size, digest])), v.minLength(1, 'empty')),
});

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
  const bad = errorAbout('PACKAGE_INVALID', `${from}: ${OMITTED_JSON}`, 'build the bundle again');
  const unsupported = errorAbout('UNSUPPORTED', from, 'a newer curlew built this bundle; use the one inside it');
  const other = (shown: string): CurlewError => unsupported(`${OMITTED_JSON} has the unsupported format ${shown}`);
  const { files: rows } = readJson(omittedJson, text, { bad, format: { only: OMITTED_FORMAT, other } });
  let before = '';
  const files = rows.map(([path, mode, bytes, hash], at): PackageFile => {
    if (osFolderOf(path) === undefined) throw bad(`${JSON.stringify(path)} is outside the operating system folders`);
    if (compareText(before, path) >= 0) throw bad(`files[${at}]: repeated or out of order`);
    before = path;
    return { path, mode, size: bytes, digest: hash };
  });
  if (formatOmitted(files) !== text) throw bad('not canonical');
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  if (!Number.isSafeInteger(bytes)) throw bad('sizes');
  const folders = new Set(files.map(({ path }) => osFolderOf(path)));
  return { files, folders: OS_IDS.filter((id) => folders.has(id)), bytes };
}
