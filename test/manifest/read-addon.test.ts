import { execFileSync } from 'node:child_process';
import { chmod, mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { digestOf } from '../../src/core/digest.ts';
import { findAddons } from '../../src/manifest/find-addons.ts';
import { listAddon, readAddon, type AddonSource } from '../../src/manifest/read-addon.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packageOf } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('manifest/read-addon');
const AT = 'addons/ekco/0.28.14';

async function addon(files: Files, beside: Files = {}): Promise<Tree> {
  return tree({
    [`${AT}/Manifest`]: '',
    [`${AT}/install.sh`]: 'ekco() { :; }\n',
    ...Object.fromEntries(Object.entries(files).map(([path, content]) => [`${AT}/${path}`, content])),
    ...beside,
  });
}

function makePipes(...paths: readonly string[]): void {
  execFileSync('bash', ['-c', 'mkfifo "$@"', 'mkfifo', ...paths]);
}

async function read(box: Tree, signal: AbortSignal): Promise<AddonSource> {
  const { folders } = await findAddons(box.path, [AT], { signal });
  const [first] = folders;
  if (first === undefined) throw new Error('no add-on found');
  return readAddon(first, { signal });
}

test('files come sorted by code unit with size, digest and one of two modes', async ({ signal }) => {
  await using box = await addon({ 'b/a.yaml': 'x', 'b-a': '', B: 'yy', 'run.sh': '#!/bin/sh\n' });
  await chmod(box.at(AT, 'B'), 0o600);
  await chmod(box.at(AT, 'b-a'), 0o666);
  const { files, diagnostics } = await read(box, signal);
  assert.equal(diagnostics, []);
  assert.equal(
    files.map(({ path, mode, size }) => [path, mode.toString(8), size]),
    [
      ['B', '644', 2],
      ['Manifest', '644', 0],
      ['b-a', '644', 0],
      ['b/a.yaml', '644', 1],
      ['install.sh', '644', 14],
      ['run.sh', '755', 10],
    ],
  );
  assert.is(files[0]?.digest, digestOf('yy'));
});

test('Manifest, hooks, categories and settings schema are read', async ({ signal }) => {
  const categories = JSON.stringify({
    name: 'ekco',
    requires: ['kubernetes'],
    fulfills: ['operator'],
    recommends: ['rook'],
    kubernetesVersion: { '0.28.14': '>=1.28.0 <1.32.0' },
  });
  await using box = await addon(
    {
      Manifest: 'image a b:1\n',
      'install.sh': 'ekco_join() { :; }\nekco() { :; }\nekco_x() { :; }',
      'schema.json': '{"type":"object"}',
    },
    { 'addons/ekco/categories.json': categories },
  );
  const source = await read(box, signal);
  assert.equal(source.diagnostics, []);
  assert.equal(source.ref, { tree: 'addons', name: 'ekco', version: '0.28.14' });
  assert.is(source.folder, box.at(AT));
  assert.is(source.root, box.path);
  assert.is(source.manifest.requests.length, 1);
  assert.equal(source.hooks, ['ekco', 'ekco_join']);
  assert.equal([source.requires, source.fulfills, source.recommends], [['kubernetes'], ['operator'], ['rook']]);
  assert.is(source.kubernetesVersion, '>=1.28.0 <1.32.0');
  assert.equal(source.settings, { type: 'object' });
});

test('hidden files and odd names are kept: nothing is filtered out', async ({ signal }) => {
  await using box = await addon({ '.DS_Store': 'x', '.git/config': 'x', 'a b': 'x', 'Manifest.lock': '{}', 'ä~': 'x' });
  const { files, diagnostics } = await read(box, signal);
  assert.equal(diagnostics, []);
  assert.is(files.length, 7);
});

for (const [title, files, beside, expected] of [
  ['addon.json', { 'addon.json': '{}' }, {}, ['addon/reserved-name']],
  ['addon.omitted.json', { 'addon.omitted.json': '{}' }, {}, ['addon/reserved-name']],
  ['a folder images', { 'images/x': '' }, {}, ['addon/reserved-name']],
  ['a folder assets', { 'assets/x': '' }, {}, ['addon/reserved-name']],
  ['an OS folder that a directive makes', { Manifest: 'yum9 a\n', 'rhel-9/x': '' }, {}, ['addon/reserved-name']],
  ['an OS folder that no directive makes', { Manifest: 'yum8 a\n', 'rhel-9/Deps': '' }, {}, []],
  ['a package of its own', { 'out/ekco-0.28.14_arm64.tar.gz': '' }, {}, ['addon/own-package']],
  ['an archive of another name', { 'out/ekco.tar.gz': '' }, {}, []],
  ['a name with a backslash', { 'a\\b': '' }, {}, ['addon/path']],
  ['a name with a newline', { 'a\nb': '' }, {}, ['addon/path']],
  ['categories.json that is no JSON', {}, { 'addons/ekco/categories.json': '{' }, ['addon/categories']],
  [
    'categories.json with hostile names',
    {},
    { 'addons/ekco/categories.json': '{"requires":["a\\u009b2J"]}' },
    ['addon/categories'],
  ],
  [
    'categories of several words',
    {},
    { 'addons/ekco/categories.json': '{"requires":["CNI Plugin"],"fulfills":["Übung 1"]}' },
    [],
  ],
  ['a category of blanks', {}, { 'addons/ekco/categories.json': '{"requires":[" "]}' }, ['addon/categories']],
  ['schema.json that is a list', { 'schema.json': '[]' }, {}, ['addon/schema']],
  ['a broken Manifest', { Manifest: 'imag x' }, {}, ['manifest/unknown-directive']],
  ['a Manifest of two megabytes', { Manifest: ' '.repeat(2 ** 21) }, {}, ['manifest/too-large']],
  ['a Manifest in Latin-1', { Manifest: Buffer.from('# caf\xe9\n', 'latin1') }, {}, ['manifest/encoding']],
  ['an install.sh of five megabytes', { 'install.sh': '#'.repeat(5 * 2 ** 20) }, {}, ['install/too-large']],
] as const) {
  test(`${title}: ${expected.join(', ') || 'accepted'}`, async ({ signal }) => {
    await using box = await addon(files, beside);
    assert.equal(
      (await read(box, signal)).diagnostics.map(({ code }) => code),
      expected,
    );
  });
}

test('packages and bundles of curlew in an add-on are found, whatever add-on and version they are of', async ({
  signal,
}) => {
  await using box = await addon({
    'out/webby-1.0.0.tar.gz': packageOf('webby', '1.0.0', []).bytes,
    'old/b.tgz': bundleOf([
      { name: 'aaa', version: '1', files: {} },
      { name: 'bbb', version: '1', files: {} },
    ]),
    'ours.txt': packageOf('webby', '1.0.0', []).bytes,
    'upstream.tar.gz': gzipSync('an archive of somebody else'),
    'short.tar.gz': packageOf('webby', '1.0.0', []).bytes.subarray(0, -1),
  });
  assert.equal(
    (await read(box, signal)).diagnostics.map(({ code, place, message }) => [
      code,
      place.file.slice(AT.length + 1),
      message,
    ]),
    [
      ['addon/own-package', 'old/b.tgz', 'this is a bundle of 2 packages'],
      ['addon/own-package', 'out/webby-1.0.0.tar.gz', 'this is the package of webby-1.0.0'],
    ],
  );
});

test('links, pipes and empty folders are told of; links are not followed', async ({ signal }) => {
  await using box = await addon({});
  await symlink('/etc/passwd', box.at(AT, 'passwd'));
  await symlink('/etc', box.at(AT, 'etc'));
  makePipes(box.at(AT, 'pipe'));
  await mkdir(box.at(AT, 'nothing'));
  const { files, diagnostics } = await read(box, signal);
  assert.equal(
    diagnostics.map(({ code, place }) => [code, place.file.slice(AT.length + 1)]),
    [
      ['addon/not-regular', 'etc'],
      ['addon/empty-folder', 'nothing'],
      ['addon/not-regular', 'passwd'],
      ['addon/not-regular', 'pipe'],
    ],
  );
  assert.is(files.length, 2);
});

test('a pipe in the place of Manifest and install.sh is not waited on', async ({ signal }) => {
  await using box = await tree({ [`${AT}/x`]: '' });
  makePipes(box.at(AT, 'Manifest'), box.at(AT, 'install.sh'));
  const { diagnostics } = await read(box, signal);
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['addon/not-regular', 'addon/not-regular'],
  );
});

test('a Manifest that is a link is refused, not read', async ({ signal }) => {
  await using box = await tree({ [`${AT}/install.sh`]: 'ekco() { :; }\n', secret: 'imag x' });
  await symlink('../../../secret', box.at(AT, 'Manifest'));
  assert.equal(
    (await read(box, signal)).diagnostics.map(({ code }) => code),
    ['addon/not-regular'],
  );
});

test('a folder without Manifest or install.sh says which is missing', async ({ signal }) => {
  await using box = await tree({ [`${AT}/x`]: '' });
  assert.equal(
    (await read(box, signal)).diagnostics.map(({ code }) => code),
    ['manifest/missing', 'install/missing'],
  );
});

test('a version folder that is a link is refused', async ({ signal }) => {
  await using box = await addon({});
  await symlink('0.28.14', box.at('addons/ekco/latest'));
  const { folders } = await findAddons(box.path, ['ekco/latest'], { signal });
  const [first] = folders;
  if (first === undefined) throw new Error('not found');
  const { files, diagnostics } = await listAddon(first, { signal });
  assert.equal(files, []);
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['addon/not-regular'],
  );
});

test('a version folder that is gone is said to be', async ({ signal }) => {
  await using box = await addon({});
  const { folders } = await findAddons(box.path, [AT], { signal });
  const [first] = folders;
  if (first === undefined) throw new Error('not found');
  const { diagnostics } = await listAddon({ ...first, folder: box.at('nowhere'), shown: 'nowhere' }, { signal });
  assert.is(diagnostics.find(({ code }) => code === 'addon/not-regular')?.message, 'the folder does not exist');
});

test('reading stops when it is cancelled', async () => {
  await using box = await addon({});
  await writeFile(box.at(AT, 'big'), Buffer.alloc(8 * 2 ** 20));
  const { folders } = await findAddons(box.path, [AT], { signal: never });
  const [first] = folders;
  if (first === undefined) throw new Error('not found');
  let thrown: unknown;
  try {
    await readAddon(first, { signal: AbortSignal.abort(new Error('stop')) });
  } catch (error) {
    thrown = error;
  }
  assert.match(String(thrown), /stop/);
});

test('files that say that they are larger than any disk are found, and not read', async ({ signal }) => {
  await using box = await addon({ 'holes.img': '' });
  await truncate(box.at(AT, 'holes.img'), 2 ** 40 + 1);
  const { folders } = await findAddons(box.path, [AT], { signal });
  const [first] = folders;
  if (first === undefined) throw new Error('no add-on found');
  const { diagnostics } = await listAddon(first, { signal });
  assert.equal(
    diagnostics.map(({ code, message }) => [code, message]),
    [['addon/too-many-files', 'the files are larger than 1 TiB in total']],
  );
});

test.run();
