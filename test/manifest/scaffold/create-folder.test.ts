import { mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { createAddonFolder } from '../../../src/manifest/scaffold/create-folder.ts';
import * as assert from '../../support/assert.ts';
import { deadPartialName } from '../../support/partials.ts';
import { suite } from '../../support/suite.ts';
import { tree, writeTree } from '../../support/tree.ts';

const test = suite('scaffold/create-folder');

const FILES = new Map([
  ['a/b.txt', 'one'],
  ['c.sh', 'two'],
]);
const HINT = 'do something else';

test('files appear with their modes, and nothing beside them', async ({ signal }) => {
  await using box = await tree();
  await createAddonFolder(box.path, 'addons/x', FILES, (path) => path === 'c.sh', { hint: HINT, signal });
  assert.is(await readFile(box.at('addons/x/a/b.txt'), 'utf8'), 'one');
  assert.is((await stat(box.at('addons/x/c.sh'))).mode & 0o777, 0o755 & ~process.umask());
  assert.equal(await readdir(box.path), ['addons']);
});

for (const what of ['a folder with something in it', 'an empty folder', 'a link to nowhere']) {
  test(`what is there stays as it is: ${what}`, async ({ signal }) => {
    await using box = await tree({ 'addons/y/z': '' });
    if (what === 'a link to nowhere') await symlink('nowhere', box.at('addons/x'));
    else await mkdir(box.at('addons/x'));
    if (what.includes('something')) await writeTree(box.path, { 'addons/x/mine.txt': 'mine' });
    const before = await readdir(box.path, { recursive: true });
    const made = createAddonFolder(box.path, 'addons/x', FILES, () => false, { hint: HINT, signal });
    const error = await assert.rejectsWith(made, 'FILE_EXISTS', /addons\/x already exists/);
    assert.is(error.hint, HINT);
    if (what.includes('something')) assert.match(error.message, 'mine.txt');
    assert.equal(await readdir(box.path, { recursive: true }), before);
  });
}

test('a failure takes everything away again, the folders on the way too', async ({ signal }) => {
  await using box = await tree();
  const files = new Map([
    ['a', 'x'],
    ['a/b', 'a file is in the way'],
  ]);
  await assert.rejectsWith(
    createAddonFolder(box.path, 'addons/deep/x', files, () => false, { hint: HINT, signal }),
    'FILE_UNUSABLE',
  );
  assert.equal(await readdir(box.path), []);
});

test('of two at once one makes the folder and the other is refused', async ({ signal }) => {
  await using box = await tree();
  const put = async (text: string): Promise<void> =>
    createAddonFolder(box.path, 'addons/x', new Map([['a', text]]), () => false, { hint: HINT, signal });
  const results = await Promise.allSettled([put('1'), put('2'), put('3')]);
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const one of results) if (one.status === 'rejected') assert.match(String(one.reason), 'already exists');
  assert.equal(await readdir(box.path), ['addons']);
  assert.equal(await readdir(box.at('addons')), ['x']);
});

test('what a killed process left aside is removed', async ({ signal }) => {
  const left = deadPartialName();
  await using box = await tree({ [`${left}/a/b`]: '', [`.curlew-partial-x/a`]: '' });
  await createAddonFolder(box.path, 'addons/x', FILES, () => false, { hint: HINT, signal });
  assert.equal((await readdir(box.path)).toSorted(), ['.curlew-partial-x', 'addons']);
});

test.run();
