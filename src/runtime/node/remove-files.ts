/** Removes the files that runs created in an install folder. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError } from '../../core/errors.ts';
import { nodePath, PLACED } from '../../core/layout.ts';

/** Removes all files of an add-on, of every version. Files that hooks created elsewhere stay. */
export async function removeAddonFiles(directory: string, name: string): Promise<void> {
  const trees = ['addons', 'packages', 'previous/addons', 'previous/packages', 'kustomize'];
  try {
    // The records first: without a record, files that remain are verified by reading all of them.
    for (const tree of trees)
      for (const path of [`${PLACED}/${tree}/${name}`, `${tree}/${name}`])
        await rm(join(directory, path), { recursive: true, force: true });
  } catch (error) {
    throw fileError(`remove the files of ${name}`, error);
  }
}

/** Everything that runs create in an install folder. Records are last: until they are removed, the call can be repeated. */
const OURS: readonly string[] = [
  'addons',
  'packages',
  'bin',
  'kustomize',
  'previous',
  PLACED,
  'fetched',
  'assets',
  nodePath.containerdApplied,
  nodePath.restore,
  'runs',
  'seen-releases.json',
  'seen-bundles.json',
  'records.json',
];

/** Removes curlew's own files; files of hooks or users stay. Returns the names that existed. */
export async function removeOurFiles(directory: string): Promise<readonly string[]> {
  try {
    const existing = await readdir(directory);
    const ours = [
      ...OURS.filter((name) => existing.includes(name)),
      ...existing.filter((name) => /^\.(?:new|old|curlew-partial)-/.test(name)),
    ];
    for (const name of ours) await rm(join(directory, name), { recursive: true, force: true });
    return ours;
  } catch (error) {
    throw fileError(`clear ${directory}`, error);
  }
}
