/** Taking everything off a node that was put there by runs. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, CurlewError, fileError } from '../core/errors.ts';
import type { Report } from '../core/events.ts';
import { readAsked } from './asked.ts';
import { CONTAINERD_APPLIED } from './cluster/kurl-config.ts';
import { keptPackage } from './kept-package.ts';
import type { RunRequest } from './prepare.ts';
import { readRecords } from './records.ts';
import type { KeptRequest } from './rollback.ts';
import type { ShellVariable } from './settings.ts';

/**
 * What runs the uninstall hooks of all add-ons, with the settings they were installed with. An add-on whose package is
 * not there any more is told, and left out.
 */
export async function resetRequest(
  directory: string,
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<KeptRequest> {
  const { applied, extracted } = await readRecords(directory);
  const packages: RunRequest['packages'][number][] = [];
  const variables = new Map<string, ShellVariable>();
  const byRun = Object.entries(applied).toSorted(([, a], [, b]) => (a.run < b.run ? -1 : Number(a.run > b.run)));
  for (const [name, { version, digest, run }] of byRun) {
    const known = extracted.find((one) => one.name === name && one.version === version);
    const ref = { tree: known?.tree ?? 'addons', name, version } as const;
    const asked = await readAsked(directory, run);
    for (const variable of asked?.variables ?? []) variables.set(variable[0], variable);
    if (digest === undefined) {
      const text = `${name}: it was installed by another tool, and stays`;
      report({ type: 'note', level: 'warning', text });
      continue;
    }
    try {
      packages.push({ source: await keptPackage(directory, ref, digest, { signal }), settings: asked?.settings[name] });
    } catch (error) {
      if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
      report({ type: 'note', level: 'warning', text: `${asError(error).message}: its uninstall hook is left out` });
    }
  }
  return { kind: 'reset', packages, variables: [...variables.values()], reapply: true };
}

/** All that runs put into an install folder, the records last: until they are gone, the same call can be given again. */
const OURS: readonly string[] = [
  'addons',
  'packages',
  'bin',
  'kustomize',
  'previous',
  'fetched',
  'assets',
  CONTAINERD_APPLIED,
  'runs',
  'seen-releases.json',
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
