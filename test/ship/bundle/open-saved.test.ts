/** Plans that somebody has altered, and what the packages of the store say to them. */
import { planSplice, type SplicePart } from '../../../src/formats/archive/splice.ts';
import { openSavedPlan } from '../../../src/ship/bundle/open-saved.ts';
import { formatBundlePlan, parseBundlePlan } from '../../../src/ship/bundle/plan-file.ts';
import { formatBundleJson } from '../../../src/core/bundle.ts';
import { digestOf } from '../../../src/core/digest.ts';
import type { OsId } from '../../../src/core/os.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../../support/bundles.ts';
import { noise } from '../../support/packages.ts';
import { planSpec } from '../../support/saved-plans.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/bundle/open-saved');

const SHARED = { path: 'images/blobs/sha256/a', data: noise(20_000, 7) };
const PACKAGES: readonly TestPackage[] = [
  { name: 'alpha', version: '1.0.0', files: [{ path: 'install.sh', data: 'alpha() { :; }\n' }, SHARED] },
  { name: 'beta', version: '2.0.0', files: [SHARED, { path: 'text', data: 'word '.repeat(5000) }] },
];

async function save(box: Tree, signal: AbortSignal): Promise<{ readonly store: Store; readonly text: string }> {
  const store = await publishTestPackages(box, PACKAGES, signal);
  await using open = await planSpec(box, store, specOf({ alpha: 'latest', beta: '2.0.x' }), { signal });
  return { store, text: formatBundlePlan({ store: store.address, plan: open.plan }) };
}

/** The plan as somebody would write it who has put `data` into the place of one file, and taken `gone` away. */
function forged(text: string, { path, data, gone }: Readonly<Record<'path' | 'data' | 'gone', string>>): string {
  const { plan } = parseBundlePlan(text, 'p');
  const { index, origins } = plan.splice;
  const own = new Map(plan.files.map((file) => [file.path, file] as const));
  const splice = planSplice(
    index.entries.flatMap((entry, at): readonly SplicePart[] => {
      const [origin, file] = [origins[at], own.get(entry.path)];
      if (entry.path === gone) return [];
      if (entry.path === path) return [{ kind: 'file', path, mode: entry.mode, data: Buffer.from(data) }];
      if (origin !== undefined)
        return [{ kind: 'entry', entry, source: origin.source, at: origin.offset, length: origin.length }];
      return file === undefined ? [{ kind: 'link', entry }] : [{ kind: 'file', ...file }];
    }),
  );
  const changedFile = { path, mode: 0o644 as const, data: Buffer.from(data) };
  return formatBundlePlan({
    store: 's',
    plan: { ...plan, splice, files: [...plan.files.filter((one) => one.path !== path), changedFile] },
  });
}

const SCRIPT = 'addons/alpha/1.0.0/install.sh';

for (const [title, change, code, message] of [
  [
    'a script of its own in a package',
    { path: SCRIPT, data: 'alpha() { evil; }' },
    'FILE_UNUSABLE',
    /install\.sh is not the file of r1\/alpha/,
  ],
  [
    'a package without one of its files',
    { gone: 'addons/beta/2.0.0/text' },
    'FILE_UNUSABLE',
    /text is not the file of r1\/beta/,
  ],
  [
    'a script of its own for the whole',
    { path: 'install.sh', data: 'evil' },
    'PLAN_CHANGED',
    /has a different install\.sh/,
  ],
] as const) {
  test(`hostile plan: ${title}`, async ({ signal }) => {
    await using box = await tree();
    const { store, text } = await save(box, signal);
    const saved = parseBundlePlan(forged(text, { path: '', data: '', gone: '', ...change }), 'p');
    const opened = openSavedPlan(saved, store, { executables: box.at('node'), signal });
    await assert.rejectsWith(opened, code, message);
  });
}

test('hostile plan: a bundle.json that describes other packages than the store has', async ({ signal }) => {
  await using box = await tree();
  const { store, text } = await save(box, signal);
  const { plan } = parseBundlePlan(text, 'p');
  const [alpha, ...others] = plan.bundle.packages;
  if (alpha === undefined) throw new Error('no package');
  const packages = [{ ...alpha, digest: digestOf('another') }, ...others];
  const data = formatBundleJson({ ...plan.bundle, packages });
  const saved = parseBundlePlan(forged(text, { path: 'bundle.json', data, gone: '' }), 'p');
  const opened = openSavedPlan(saved, store, { executables: box.at('node'), signal });
  await assert.rejectsWith(opened, 'FILE_UNUSABLE', /alpha-1\.0\.0\.tar\.gz is not the package in the plan/);
});

const SYSTEMS: TestPackage = {
  name: 'gamma',
  version: '1.0.0',
  files: [
    { path: 'install.sh', data: 'gamma() { :; }\n' },
    { path: 'rhel-9/archives/a.rpm', data: 'an rpm' },
    { path: 'ubuntu-22.04/archives/a.deb', data: 'a deb' },
  ],
};

for (const [title, kept, gone, message] of [
  [
    'to keep fewer systems than it does',
    ['ubuntu-22.04'],
    '',
    /omitted\.json is not the file of r1\/gamma-1\.0\.0\.tar\.gz/,
  ],
  [
    'to keep a system that it is without',
    ['rhel-8', 'rhel-9', 'ubuntu-22.04'],
    '',
    /rhel-8\/b\.rpm is not the file of r1\/gamma/,
  ],
  [
    'nothing of what it leaves out',
    ['rhel-9', 'ubuntu-22.04'],
    'addon.omitted.json',
    /omitted\.json is not the file of/,
  ],
  ['to be whole', undefined, '', /rhel-8\/b\.rpm is not the file of r1\/gamma/],
] as const) {
  test(`hostile plan: it claims ${title}`, async ({ signal }) => {
    await using box = await tree();
    const files = [...SYSTEMS.files, { path: 'rhel-8/b.rpm', data: 'another' }];
    const store = await publishTestPackages(box, [{ ...SYSTEMS, files }], signal);
    const os: readonly OsId[] = ['rhel-9', 'ubuntu-22.04'];
    await using open = await planSpec(box, store, specOf({ gamma: 'latest' }), { os, signal });
    const text = formatBundlePlan({ store: store.address, plan: open.plan });
    const honest = parseBundlePlan(text, 'p');
    const executables = box.at('node');
    await (await openSavedPlan(honest, store, { executables, signal }))[Symbol.asyncDispose]();
    const { os: said, ...rest } = honest.plan.bundle;
    const data = formatBundleJson({ ...rest, ...(kept === undefined ? {} : { os: { omitted: 0, ...said, kept } }) });
    const change = { path: 'bundle.json', data, gone: `addons/gamma/1.0.0/${gone}` };
    const saved = parseBundlePlan(forged(text, change), 'p');
    await assert.rejectsWith(openSavedPlan(saved, store, { executables, signal }), 'FILE_UNUSABLE', message);
  });
}

test.run();
