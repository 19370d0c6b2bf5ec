/** Removing what runs have put into an install folder. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError } from '../../core/errors.ts';
import { PLACED } from '../../core/layout.ts';
import { CONTAINERD_APPLIED } from '../cluster/kurl-config.ts';

/** Removes all files of an add-on, of whichever version; what hooks put elsewhere stays. */
export async function removeAddonFiles(directory: string, name: string): Promise<void> {
  const trees = ['addons', 'packages', 'previous/addons', 'previous/packages', 'kustomize'];
  try {
    // What is known of them first: without it, what is left would be read as a whole.
    for (const tree of trees)
      for (const path of [`${PLACED}/${tree}/${name}`, `${tree}/${name}`])
        await rm(join(directory, path), { recursive: true, force: true });
  } catch (error) {
    throw fileError(`remove the files of ${name}`, error);
  }
}

/** All that runs put into an install folder, the records last: until they are gone, the same call can be given again. */
const OURS: readonly string[] = [
  'addons',
  'packages',
  'bin',
  'kustomize',
  'previous',
  PLACED,
  'fetched',
  'assets',
  CONTAINERD_APPLIED,
  'runs',
  'seen-releases.json',
  'seen-bundles.json',
  'records.json',
];

/** Removes our files; what hooks or people put beside them stays. Returns the names that were there. */
export async function removeOurFiles(directory: string): Promise<readonly string[]> {
  try {
    const there = await readdir(directory);
    const ours = [
      ...OURS.filter((name) => there.includes(name)),
      ...there.filter((name) => /^\.(?:new|old)-/.test(name)),
    ];
    for (const name of ours) await rm(join(directory, name), { recursive: true, force: true });
    return ours;
  } catch (error) {
    throw fileError(`clear ${directory}`, error);
  }
}
