import { symlink } from 'node:fs/promises';
import { findAddons } from '../../src/manifest/find-addons.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('manifest/find-addons');
const FILES = {
  'addons/ekco/0.28.14/Manifest': '',
  'addons/ekco/0.28.9/Manifest': '',
  'addons/ekco/template/Manifest': '',
  'addons/ekco/build-images/Manifest': '',
  'addons/ekco/docs/readme.md': '',
  'addons/ekco/categories.json': '{}',
  'addons/aws/0.1.0/install.sh': '',
  'packages/host/fio/Manifest': '',
};
const EKCO = ['addons/ekco/0.28.9', 'addons/ekco/0.28.14'];

for (const [pattern, expected] of [
  [[], ['addons/aws/0.1.0', ...EKCO, 'packages/host/fio']],
  [['ekco'], EKCO],
  [['ekco/0.28.9'], ['addons/ekco/0.28.9']],
  [['ekco-0.28.14'], ['addons/ekco/0.28.14']],
  [['addons/ekco/0.28.14'], ['addons/ekco/0.28.14']],
  [['./addons/ekco/0.28.14/'], ['addons/ekco/0.28.14']],
  [['addons/ekco/0.28.14/Manifest'], ['addons/ekco/0.28.14']],
  [['addons/ekco'], EKCO],
  [['packages'], ['packages/host/fio']],
  [['.'], ['addons/aws/0.1.0', ...EKCO, 'packages/host/fio']],
  [
    ['ekco', 'ekco-0.28.9', 'aws'],
    ['addons/aws/0.1.0', ...EKCO],
  ],
] as const) {
  test(`${JSON.stringify(pattern)} names its add-ons, each once and in order`, async ({ signal }) => {
    await using box = await tree(FILES);
    const { folders, diagnostics } = await findAddons(box.path, pattern, { signal });
    assert.equal(
      folders.map(({ shown }) => shown),
      expected,
    );
    assert.equal(diagnostics, []);
  });
}

test('an add-on knows its folder and the root of its repository', async ({ signal }) => {
  await using box = await tree({ 'repo/addons/ekco/1/Manifest': '', 'here/x': '' });
  const { folders } = await findAddons(box.at('here'), ['../repo'], { signal });
  const expected = { folder: box.at('repo/addons/ekco/1'), root: box.at('repo'), shown: '../repo/addons/ekco/1' };
  assert.equal(folders, [{ tree: 'addons', name: 'ekco', version: '1', ...expected }]);
});

test('a version that is not there is answered with those that are', async ({ signal }) => {
  await using box = await tree(FILES);
  for (const pattern of ['ekco@9.9.9', 'ekco/9.9.9', 'ekco-9.9.9', 'ekco@v9']) {
    const { hint } = await assert.rejectsWith(findAddons(box.path, [pattern], { signal }), 'NOT_FOUND', /no add-on/);
    assert.match(hint ?? '', /^ekco is here in 0\.28\.14, 0\.28\.9; specify a name, name\/version/);
  }
});

test('what names nothing is an error that knows the nearest name', async ({ signal }) => {
  await using box = await tree(FILES);
  const error = await assert.rejectsWith(findAddons(box.path, ['ekoc'], { signal }), 'NOT_FOUND', /"ekoc"/);
  assert.match(error.hint ?? '', /did you mean "ekco"/);
  const far = await assert.rejectsWith(findAddons(box.path, ['nope'], { signal }), 'NOT_FOUND', /"nope"/);
  assert.match(far.hint ?? '', /a path; here are .*\bekco\b/);
  await using empty = await tree({});
  const none = await assert.rejectsWith(findAddons(empty.path, ['nope'], { signal }), 'NOT_FOUND', /"nope"/);
  assert.match(none.hint ?? '', /this folder has no addons or packages$/);
});

test('a file means its add-on, and not all that are next to it', async ({ signal }) => {
  await using box = await tree({
    'addons/ekco/1/Manifest': '',
    'addons/ekco/1/motd.txt': '',
    'addons/x': '',
    file: '',
  });
  const { folders } = await findAddons(box.path, ['addons/ekco/1/motd.txt'], { signal });
  assert.equal(
    folders.map(({ shown }) => shown),
    ['addons/ekco/1'],
  );
  for (const file of ['file', 'addons/x']) {
    await assert.rejectsWith(
      findAddons(box.path, [file], { signal }),
      'NOT_FOUND',
      /is a file that belongs to no add-on/,
    );
  }
});

test('a file, or nothing, in the place of the folder with add-ons is named', async ({ signal }) => {
  await using box = await tree({ file: '' });
  await assert.rejectsWith(findAddons(box.at('file'), [], { signal }), 'FILE_UNUSABLE', /file: it is not a folder$/);
  await assert.rejectsWith(findAddons(box.at('no'), [], { signal }), 'NOT_FOUND', /no: no such folder$/);
});

test('a folder without any add-on is an error', async ({ signal }) => {
  await using box = await tree({});
  await assert.rejectsWith(findAddons(box.path, [], { signal }), 'NOT_FOUND', /no add-ons in/);
});

test('in the folder of an add-on, the folder that contains the add-ons is named', async ({ signal }) => {
  await using box = await tree({ 'addons/ekco/1.0.0/Manifest': '' });
  for (const inside of ['addons', 'addons/ekco', 'addons/ekco/1.0.0']) {
    for (const patterns of [[], ['ekco-1.0.0'], ['addons/ekco']]) {
      const error = await assert.rejectsWith(findAddons(box.at(inside), patterns, { signal }), 'NOT_FOUND');
      assert.match(error.hint ?? '', `run the command in ${box.path},`);
    }
    const none = await assert.rejectsWith(findAddons(box.at(inside), ['nope'], { signal }), 'NOT_FOUND');
    assert.match(none.hint ?? '', /a path; this folder has no addons or packages$/);
  }
});

test('in a folder called packages or addons, a folder without add-ons is not named', async ({ signal }) => {
  await using box = await tree({
    'mono/packages/web/package.json': '{}',
    'empty/addons/x': '',
    'addons/ekco/1/Manifest': '',
  });
  for (const inside of ['mono/packages', 'mono/packages/web', 'empty/addons']) {
    const error = await assert.rejectsWith(findAddons(box.at(inside), [], { signal }), 'NOT_FOUND');
    assert.match(error.hint ?? '', /^an add-on is a folder addons\/<name>\/<version> with/);
    const named = await assert.rejectsWith(findAddons(box.at(inside), ['web'], { signal }), 'NOT_FOUND');
    assert.not.match(named.hint ?? '', 'run the command');
  }
});

test('folders whose names cannot be names or versions are findings, not add-ons', async ({ signal }) => {
  await using box = await tree({
    'addons/Ekco/1.0/Manifest': '',
    'addons/ekco/1..0/Manifest': '',
    [`addons/${'n'.repeat(120)}/1/Manifest`]: '',
    'addons/ek\nco/-1/Manifest': '',
  });
  const { folders, diagnostics } = await findAddons(box.path, [], { signal });
  assert.equal(folders, []);
  const codes = diagnostics.map(({ code }) => code).toSorted();
  assert.equal(codes, ['addon/name', 'addon/name', 'addon/name', 'addon/version', 'addon/version']);
});

test('a version that is a link is listed, so that its reader can refuse it', async ({ signal }) => {
  await using box = await tree({ 'addons/ekco/1/Manifest': '' });
  await symlink('1', box.at('addons/ekco/latest'));
  const { folders } = await findAddons(box.path, [], { signal });
  assert.equal(folders.map(({ version }) => version).toSorted(), ['1', 'latest']);
});

test.run();
