/** Creates the additional files that a repository needs here. Existing files are not changed. */
import { lstat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CurlewError, ifExists } from '../core/errors.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { readTextFile } from '../manifest/text-file.ts';
import type { Migration } from './migrate.ts';

export interface WrittenFile {
  /** Relative to the folder. */
  readonly path: string;
  /** `kept`: an existing file, which is not changed. */
  readonly outcome: 'written' | 'same' | 'kept';
}

const LIMIT = 1 << 20;

/** Rules that add-ons of kURL break for good reasons. */
const LINT_CONFIG = { rules: { 'hook/prefix': 'info', 'hook/no-install': 'info' }, ignore: [] };

/** Texts by path: version orders, the lint configuration and, for another folder, the categories of add-ons. */
export function newFiles({ repository, addons, orders }: Migration, out: string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const { tree, name, versions } of orders) {
    files.set(`${tree}/${name}/versions.json`, `${JSON.stringify(versions, undefined, 2)}\n`);
  }
  if (resolve(out) !== resolve(repository)) {
    for (const { tree, name, path } of addons) {
      const read = readTextFile(join(repository, dirname(path), 'categories.json'), LIMIT);
      if (read.kind === 'text') files.set(`${tree}/${name}/categories.json`, read.text);
    }
  }
  files.set('.curlew-lint.json', `${JSON.stringify(LINT_CONFIG, undefined, 2)}\n`);
  return files;
}

/**
 * Creates each file atomically; throws `FILE_UNUSABLE` if a folder in its path is a symbolic link. With `dryRun`, shows what would
 * be created.
 */
export async function writeNewFiles(
  out: string,
  files: ReadonlyMap<string, string>,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<readonly WrittenFile[]> {
  const written: WrittenFile[] = [];
  if (!dryRun) await makeFolder(out);
  for (const [path, text] of files) {
    signal.throwIfAborted();
    const target = join(out, path);
    if (!dryRun) await makeFolders(out, dirname(path));
    const existing = await ifExists(`read ${target}`, lstat(target));
    if (existing === undefined && !dryRun) await writeStateFile(target, text, 0o644);
    const read = existing === undefined ? undefined : readTextFile(target, LIMIT);
    const same = read?.kind === 'text' && read.text === text;
    written.push({ path, outcome: existing === undefined ? 'written' : same ? 'same' : 'kept' });
  }
  return written;
}

/** One level at a time, so that no symbolic link leads out of the folder. */
async function makeFolders(out: string, below: string): Promise<void> {
  let path = out;
  for (const name of below.split('/').filter((one) => one !== '.')) {
    path = join(path, name);
    await makeFolder(path);
    if (!(await lstat(path)).isDirectory()) {
      throw new CurlewError('FILE_UNUSABLE', `cannot create files in ${path}: it is a symbolic link`, {
        hint: 'replace it with a folder',
      });
    }
  }
}
