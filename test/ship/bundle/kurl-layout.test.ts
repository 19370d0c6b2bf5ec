/** What kURL's own scripts expect of a bundle (kurl.md 5.3), by the commands that they run. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { openFileSource, readIndex } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { applyDelta, findHolders } from '../../../src/ship/bundle/delta/apply.ts';
import { openBase } from '../../../src/ship/bundle/delta/base.ts';
import { planDelta } from '../../../src/ship/bundle/delta/delta-plan.ts';
import { readDelta } from '../../../src/ship/bundle/delta/delta-read.ts';
import { makeInventory } from '../../../src/ship/bundle/delta/inventory.ts';
import { readKurlScripts } from '../../../src/ship/bundle/kurl-layout.ts';
import { openSavedPlan } from '../../../src/ship/bundle/open-saved.ts';
import { formatBundlePlan, parseBundlePlan } from '../../../src/ship/bundle/plan-file.ts';
import { digestOf } from '../../../src/core/digest.ts';
import type { AddonJson } from '../../../src/core/package.ts';
import { publishPackages } from '../../../src/ship/release/publish.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/bundles.ts';
import { noReport } from '../../support/context.ts';
import { noise, packageOf } from '../../support/packages.ts';
import { planSpec, writePlan } from '../../support/saved-plans.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Files, type Tree } from '../../support/tree.ts';

const test = suite('ship/bundle/kurl-layout');
const run = promisify(execFile);

const SCRIPTS: Files = {
  'scripts/install.sh': '#!/bin/bash\necho kurl\n',
  'scripts/join.sh': '#!/bin/bash\n',
  'scripts/upgrade.sh': '#!/bin/bash\n',
  'scripts/tasks.sh': '#!/bin/bash\n',
  'scripts/README': 'not for the bundle\n',
  'scripts/kurl/manifests/x.yaml': 'x: 1\n',
  'scripts/kurl/shared/kurl-util.tar': 'image\n',
};

const layer = noise(20_000, 3);
const image = { id: 'app', reference: 'docker.io/library/app:1', digest: digestOf('app'), platform: 'linux/amd64' };
const archive = { imageFormat: 'docker-archive', images: [image] } as const;

async function publish(
  box: Tree,
  imageFormats: Readonly<Record<string, Partial<AddonJson>>>,
  signal: AbortSignal,
): Promise<Store> {
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const files = [];
  for (const [name, extra] of Object.entries(imageFormats)) {
    const { bytes, addon } = packageOf(
      name,
      '1.0.0',
      [
        { path: 'Manifest', data: '' },
        { path: 'install.sh', data: `${name}() { :; }\n` },
        { path: 'images/app.tar.gz', data: layer },
      ],
      extra,
    );
    const path = box.at(`${name}.tar.gz`);
    await writeFile(path, bytes);
    files.push({ path, addon });
  }
  const options = {
    release: 'r1',
    now: new Date(0),
    carry: false,
    commit: undefined,
    jobs: 2,
    report: noReport,
  };
  await publishPackages(files, { store, ...options, signal });
  return store;
}

test('kURL’s scripts find themselves at the root and everything that they move below kurl/', async ({ signal }) => {
  await using box = await tree(SCRIPTS);
  const store = await publish(box, { alpha: archive, beta: archive }, signal);
  const options = { kurlScripts: box.at('scripts'), signal };
  await using open = await planSpec(box, store, specOf({ alpha: 'latest', beta: 'latest' }), options);
  await writePlan(open, box.at('b.tar.gz'), signal);

  await using source = await openFileSource(box.at('b.tar.gz'));
  assert.is((await verifyArchive(source, { signal })).tocDigest, open.plan.splice.index.tocDigest);
  const site = box.at('site');
  await mkdir(site);
  await run('tar', ['xzf', box.at('b.tar.gz'), '-C', site]);
  assert.equal((await readdir(site)).toSorted(), [
    'bundle.json',
    'install.sh',
    'installer.yaml',
    'join.sh',
    'kurl',
    'stargz.index.json',
    'tasks.sh',
    'upgrade.sh',
  ]);
  // What move_airgap_assets does: each entry of ./kurl takes the place of the one in the install folder.
  const move = 'mkdir -p var/addons/old; for one in kurl/*; do rm -rf "var/${one#kurl/}"; mv "$one" var/; done';
  await run('bash', ['-c', move], { cwd: site });
  assert.equal((await readdir(`${site}/var`)).toSorted(), ['addons', 'manifests', 'shared']);
  for (const name of ['alpha', 'beta']) {
    const found = await readFile(`${site}/var/addons/${name}/1.0.0/images/app.tar.gz`);
    assert.ok(found.equals(layer), name);
    assert.is(await readFile(`${site}/var/addons/${name}/1.0.0/Manifest`, 'utf8'), '');
  }
  assert.is((await stat(box.at('b.tar.gz'))).size, open.plan.splice.size);
});

test('its plan is saved and carried out like any other', async ({ signal }) => {
  await using box = await tree(SCRIPTS);
  const store = await publish(box, { alpha: archive, beta: archive }, signal);
  const options = { kurlScripts: box.at('scripts'), signal };
  await using open = await planSpec(box, store, specOf({ alpha: 'latest', beta: 'latest' }), options);
  const text = formatBundlePlan({ store: store.address, plan: open.plan });
  const saved = parseBundlePlan(text, 'plan.json');
  assert.is(formatBundlePlan(saved), text);
  await writePlan(open, box.at('a.tar.gz'), signal);
  await using again = await openSavedPlan(saved, store, { signal });
  await writePlan(again, box.at('b.tar.gz'), signal);
  assert.ok((await readFile(box.at('a.tar.gz'))).equals(await readFile(box.at('b.tar.gz'))));
});

test('a delta of it leaves out what its packages have, and makes it again', async ({ signal }) => {
  await using box = await tree(SCRIPTS);
  const store = await publish(box, { alpha: archive, beta: archive }, signal);
  const options = { kurlScripts: box.at('scripts'), signal };
  await using open = await planSpec(box, store, specOf({ alpha: 'latest', beta: 'latest' }), options);
  await writePlan(open, box.at('b.tar.gz'), signal);
  const payloads = open.plan.splice.index.entries;
  const plan = planDelta(open.plan, makeInventory({ payloads, packages: [], tool: '1.2.3' }));
  assert.equal(
    plan.splice.index.entries.map(({ path }) => path),
    ['bundle.json', 'contents.json'],
  );
  const saved = parseBundlePlan(formatBundlePlan({ store: store.address, plan }), 'plan.json');
  await using again = await openSavedPlan(saved, store, { signal });
  await writePlan(again, box.at('d.tar.gz'), signal);
  await using source = await openFileSource(box.at('d.tar.gz'));
  const delta = await readDelta(source, await readIndex(source, { signal }), { signal });
  if (delta === undefined) throw new Error('no delta');
  const quiet = { report: noReport, signal };
  const base = await openBase(box.at('b.tar.gz'), quiet);
  assert.equal(base.packages, ['addons/alpha/1.0.0', 'addons/beta/1.0.0']);
  await mkdir(box.at('unpacked'));
  await run('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  assert.equal((await openBase(box.at('unpacked'), quiet)).packages.toSorted(), base.packages);
  const holders = await findHolders(delta, base, { doing: 'apply', signal });
  await applyDelta(delta, holders, box.at('made.tar.gz'), { force: false, ...quiet });
  assert.ok((await readFile(box.at('made.tar.gz'))).equals(await readFile(box.at('b.tar.gz'))));
});

test('packages whose images kURL cannot load are refused by name, all of them', async ({ signal }) => {
  await using box = await tree(SCRIPTS);
  const oci = { imageFormat: 'oci', images: [image] } as const;
  const store = await publish(box, { alpha: oci, beta: archive, delta: oci, gamma: { imageFormat: 'oci' } }, signal);
  const spec = specOf({ alpha: 'latest', beta: 'latest', delta: 'latest', gamma: 'latest' });
  const planned = planSpec(box, store, spec, { kurlScripts: box.at('scripts'), signal });
  await assert.rejectsWith(planned, 'UNSUPPORTED', /the images of alpha-1\.0\.0, delta-1\.0\.0$/);
});

for (const [title, files, code, message] of [
  ['a script is missing', { ...SCRIPTS, 'scripts/tasks.sh': undefined }, 'NOT_FOUND', /tasks\.sh: no such file/],
  [
    'add-ons lie there',
    { ...SCRIPTS, 'scripts/kurl/addons/x/1/install.sh': '' },
    'FILE_UNUSABLE',
    /come from packages/,
  ],
] as const) {
  test(`a folder of scripts is refused: ${title}`, async () => {
    const there = Object.entries(files).flatMap(([path, text]) => (text === undefined ? [] : [[path, text] as const]));
    await using box = await tree(Object.fromEntries(there));
    await assert.rejectsWith(readKurlScripts(box.at('scripts')), code, message);
  });
}

test.run();
