/** Lint over files that a test writes. */
import { findAddons } from '../../src/manifest/find-addons.ts';
import { lintAddons, type LintReport } from '../../src/manifest/lint.ts';
import { tree, type Files } from './tree.ts';

interface Options {
  readonly signal: AbortSignal;
  readonly shellcheck?: boolean;
  /** All of the repository, as without a path on the command line. */
  readonly patterns?: readonly string[];
}

/** Lints a repository of these files. An add-on `ekco/1` with a sound script is there unless it is given. */
export async function lintFiles(
  files: Files,
  { signal, shellcheck = false, patterns = [] }: Options,
): Promise<LintReport> {
  const sound = { 'addons/ekco/1/Manifest': '', 'addons/ekco/1/install.sh': 'ekco() { :; }\n' };
  await using box = await tree({ ...sound, ...files });
  const selection = await findAddons(box.path, patterns, { signal });
  const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';
  return await lintAddons(selection, { shellcheck, complete: patterns.length === 0, searchPath, signal });
}

/** `path:line:column severity code`, without the folder of the add-on `ekco/1`. */
export function told({ diagnostics }: LintReport): readonly string[] {
  return diagnostics.map(({ code, severity, place: { file, line, column } }) => {
    return `${file.replace('addons/ekco/1/', '')}:${line}:${column} ${severity} ${code}`;
  });
}

/** What is told about one file of the add-on `ekco/1`. */
export async function toldOf(path: string, text: string, options: Options): Promise<readonly string[]> {
  return told(await lintFiles({ [`addons/ekco/1/${path}`]: text }, options));
}
