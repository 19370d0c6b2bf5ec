/** Bundles that leave folders of systems out of a package, and lie about that. */
import { digestOf } from '../../src/core/digest.ts';
import type { ErrorCode } from '../../src/core/errors.ts';
import { formatOmitted } from '../../src/core/omitted.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import type { TestPackage } from './bundles.ts';
import { tracerPackage } from './node-install.ts';
import { archiveOf, packageOf, type TestFile } from './packages.ts';

const HOST_FILES: readonly TestFile[] = [
  { path: 'rhel-8/archives/a.rpm', data: 'rpm of 8' },
  { path: 'rhel-7-force/archives/a.rpm', data: 'rpm of 7' },
  { path: 'ubuntu-22.04/archives/a.deb', data: 'deb' },
];

/** A package with files for hosts of three systems. */
export function addon(name: string, hostFiles = HOST_FILES): TestPackage {
  const own = tracerPackage(name);
  return { ...own, files: [...own.files, ...hostFiles] };
}

const [RPM] = HOST_FILES;
export const WHOLE: ReturnType<typeof packageOf> = packageOf('aaa', '1.0.0', addon('aaa').files);

/** A bundle with some of the package's files, and this said of the others. */
export function hostileBytes(files: readonly TestFile[], note: string | undefined): Buffer {
  const notes = note === undefined ? [] : [{ path: 'addon.omitted.json', data: note }];
  const all = [{ path: 'addon.json', data: formatAddonJson(WHOLE.addon) }, ...files, ...notes];
  return archiveOf(all.map((file) => ({ ...file, path: `addons/aaa/1.0.0/${file.path}` }))).bytes;
}

/** The note about these files. */
export function rowsOf(files: readonly TestFile[]): string {
  return formatOmitted(
    files.map(({ path, data }) => {
      return { path, mode: 0o644, size: Buffer.from(data).byteLength, digest: digestOf(data) };
    }),
  );
}

const files = addon('aaa').files;
export const without = (gone: string): readonly TestFile[] => files.filter(({ path }) => !path.startsWith(gone));
export const folderOf = (kept: string): readonly TestFile[] => files.filter(({ path }) => path.startsWith(kept));

interface OmittedLie {
  readonly title: string;
  readonly given: readonly TestFile[];
  readonly note: string | undefined;
  readonly code: ErrorCode;
  readonly message: RegExp;
}

const LIES: readonly (readonly [string, readonly TestFile[], string | undefined, ErrorCode, RegExp])[] = [
  ['files that are gone', without('rhel-8'), undefined, 'DIGEST_MISMATCH', /files of aaa/],
  [
    'a script',
    without('install.sh'),
    rowsOf(folderOf('install.sh')),
    'PACKAGE_INVALID',
    /install\.sh" is outside the operating system folders/,
  ],
  ['rows of others', without('rhel-8'), rowsOf(folderOf('ubuntu')), 'PACKAGE_INVALID', /deb exists, but its folder/],
  ['what is there', files, rowsOf(folderOf('rhel-8')), 'PACKAGE_INVALID', /rhel-8\/archives\/a\.rpm exists, but its/],
  [
    'a row too many',
    without('rhel-8'),
    rowsOf([...folderOf('rhel-8'), { path: 'rhel-9/x', data: '' }]),
    'DIGEST_MISMATCH',
    /files of aaa/,
  ],
  [
    'other bytes',
    without('rhel-8'),
    rowsOf([{ path: RPM?.path ?? '', data: 'other' }]),
    'DIGEST_MISMATCH',
    /files of aaa/,
  ],
  ['no JSON', without('rhel-8'), '{', 'PACKAGE_INVALID', /not JSON/],
  ['nothing', files, `${JSON.stringify({ files: [], format: 1 })}\n`, 'PACKAGE_INVALID', /: files/],
];

export const OMITTED_LIES: readonly OmittedLie[] = LIES.map(([title, given, note, code, message]) => {
  return { title, given, note, code, message };
});
