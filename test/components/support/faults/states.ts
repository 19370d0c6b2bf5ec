/** What is in a folder, for comparing runs of one command. */
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../../src/core/digest.ts';

/** Digests of files, targets of links and the word `folder`, each after the mode, by path. */
export type State = ReadonlyMap<string, string>;

/** Names of what is not complete, or not there to stay. */
export const UNFINISHED = /(?:^|\/)\.(?:curlew-partial-|[^/]*\.(?:claim|partial|partial\.\w+)$)/;
/** Part of the name of what a folder store notes about a file: the time of the file, in nanoseconds. */
const TIME = /(\/\d+-)\d{19}(?=\.json$)/;

/** Replaces what differs between two runs that did the same; undefined leaves the path out. */
export type Settle = (path: string, text: string) => string | undefined;

export async function stateOf(folder: string, settle: Settle = (_, text) => text): Promise<State> {
  const state = new Map<string, string>();
  for (const path of (await readdir(folder, { recursive: true })).toSorted()) {
    const stats = await lstat(join(folder, path));
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isDirectory()) {
      if (settle(`${path}/`, '') !== undefined) state.set(`${path}/`, `${mode} folder`);
      continue;
    }
    const bytes = stats.isSymbolicLink()
      ? await readlink(join(folder, path))
      : await readFile(join(folder, path), 'latin1');
    const settled = settle(path, bytes);
    const name = path.replace(TIME, '$1TIME');
    if (settled !== undefined) state.set(name, `${mode} ${settled.length} ${digestOf(Buffer.from(settled, 'latin1'))}`);
  }
  return state;
}

/** What differs between two states but for these paths, one line for each path. */
export function differences(expected: State, found: State, except = /(?!)/): readonly string[] {
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((path) => !except.test(path))
    .filter((path) => expected.get(path) !== found.get(path))
    .map((path) => `${path}: ${found.get(path) ?? 'missing'} instead of ${expected.get(path) ?? 'nothing'}`);
}

/** Files under their final names with a content that they have neither before nor after the command. */
export function halfDone(before: State, after: State, found: State, between = /(?!)/): readonly string[] {
  return [...found]
    .filter(([path, is]) => before.get(path) !== is && after.get(path) !== is)
    .filter(([path]) => !path.endsWith('/') && !UNFINISHED.test(path) && !between.test(path))
    .map(([path, is]) => `${path}: ${is}, and is ${after.get(path) ?? 'missing'} in the end`);
}
