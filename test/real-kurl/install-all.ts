/** Hooks and objects: each add-on is installed by itself, by curlew and by kURL's scripts at the same time. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AddonFolder } from '../../src/manifest/find-addons.ts';
import { formatRef } from '../../src/core/ref.ts';
import { createOpened } from '../components/support/opened.ts';
import { countOf, differences } from './differences.ts';
import { bundleOf, installBundle, installOriginal, type Wish } from './install.ts';
import { ADDRESS } from './played.ts';
import type { Packages } from './packaging.ts';
import type { Outcome, Stage } from './report.ts';
import type { RunOptions } from './run.ts';
import { openSite, type Site } from './site.ts';

export interface Installing extends Pick<RunOptions, 'root' | 'box' | 'stages' | 'bin' | 'specs' | 'say'> {
  /** Which of the packages are installed by themselves; others are what is upgraded from. */
  readonly newest: readonly AddonFolder[];
}

export async function installAll(packages: Packages, how: Installing): Promise<readonly Outcome[]> {
  const opened = createOpened();
  try {
    const compares = how.stages.includes('objects');
    const [ours, theirs] = await Promise.all([
      openSite(join(how.box, 'ours')).then(opened.keep),
      compares ? openSite(join(how.box, 'theirs')).then(opened.keep) : undefined,
    ]);
    const outcomes: Outcome[] = [];
    for (const addon of packages.built.filter((one) => how.newest.includes(one))) {
      const of = await installOne(packages, addon, { ...how, ours, theirs });
      for (const { stage, addon: ref, failures } of of) how.say([`${stage} ${ref}:`, ...failures].join('\n  '));
      outcomes.push(...of);
    }
    return outcomes;
  } finally {
    await opened.close();
  }
}

interface Where extends Installing {
  readonly ours: Site;
  readonly theirs: Site | undefined;
}

async function installOne(packages: Packages, addon: AddonFolder, where: Where): Promise<readonly Outcome[]> {
  const folder = join(where.box, 'runs', formatRef(addon));
  await mkdir(folder, { recursive: true });
  const wish = wishOf(addon, packages, where);
  const { path, failures } = await bundleOf(packages, wish, folder);
  const told = (stage: Stage, of: readonly string[], more: Partial<Outcome> = {}): Outcome => {
    return { stage, addon: formatRef(addon), count: 1, failures: of, remarks: [], ...more };
  };
  if (failures.length > 0) return [told('hooks', failures)];
  const outcomes = await installBoth(packages, { wish, bundle: path, folder, told }, where);
  const before = packages.built.filter(({ name, version }) => name === addon.name && version !== addon.version).at(-1);
  if (!where.stages.includes('upgrade') || before === undefined) return outcomes;
  return [
    ...outcomes,
    told('upgrade', await upgrade(packages, before, { bundle: path, folder, told }, where), {
      remarks: [`from ${before.version}`],
    }),
  ];
}

/** The add-on with what it cannot do without: settings, and other add-ons in their newest version. */
function wishOf({ name, version }: AddonFolder, { built }: Packages, { specs }: Installing): Wish {
  const entries = Object.entries({ [name]: {}, ...specs[name] }).map(([other, settings]) => {
    const newest = built.findLast((one) => one.name === other)?.version ?? 'latest';
    return [other, { ...settings, version: other === name ? version : newest }] as const;
  });
  return { addons: Object.fromEntries(entries) };
}

interface Job {
  readonly wish: Wish;
  readonly bundle: string;
  readonly folder: string;
  readonly told: (stage: Stage, failures: readonly string[], more?: Partial<Outcome>) => Outcome;
}

async function installBoth(
  packages: Packages,
  { wish, bundle, folder, told }: Job,
  { root, stages, ours, theirs, bin }: Where,
): Promise<readonly Outcome[]> {
  await using here = await ours.enter();
  await using there = await theirs?.enter();
  const [installed, original] = await Promise.all([
    installBundle(here, bundle, folder, 'install.sh'),
    there === undefined ? [] : installOriginal(there, packages, { root, bin }, wish, folder),
  ]);
  const theirFailures = original.map((line) => `kURL's own scripts fail: ${line}`);
  const outcomes = [told('hooks', installed, { remarks: theirFailures })];
  if (there !== undefined) {
    const left = { objects: await here.objects(), url: here.url };
    const right = { objects: await there.objects(), url: there.url };
    for (const [name, { objects }] of Object.entries({ ours: left, theirs: right })) {
      await writeFile(join(folder, `${name}.json`), JSON.stringify([...objects], undefined, 1));
    }
    outcomes.push(told('objects', [...theirFailures, ...differences(left, right)], { count: countOf(left) }));
  }
  if (stages.includes('reruns') && installed.length === 0) {
    const again = await installBundle(here, bundle, folder, 'install.sh --json');
    const joins = await installBundle({ ...here, node: await here.another('node-2') }, bundle, folder, JOIN);
    outcomes.push(told('reruns', [...again.map((line) => `again: ${line}`), ...joins.map((line) => `join: ${line}`)]));
  }
  return outcomes;
}

const JOIN = `join.sh kubernetes-master-address=${ADDRESS}:6443 kubeadm-token=a.b`;

async function upgrade(
  packages: Packages,
  addon: AddonFolder,
  { bundle, folder }: Pick<Job, 'bundle' | 'folder' | 'told'>,
  where: Where,
): Promise<readonly string[]> {
  const older = join(folder, 'older');
  await mkdir(older, { recursive: true });
  const { path, failures } = await bundleOf(packages, wishOf(addon, packages, where), older);
  if (failures.length > 0) return failures;
  await using here = await where.ours.enter();
  const first = await installBundle(here, path, older, 'install.sh');
  if (first.length > 0) return first.map((line) => `the version before: ${line}`);
  return await installBundle(here, bundle, folder, 'install.sh --yes');
}
