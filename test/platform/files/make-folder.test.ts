import { readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { errnoOf } from '../../../src/core/errors.ts';
import { makeFolder, makeMissing, removeEmpty } from '../../../src/platform/files/make-folder.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('folders that people name');

test('all that is missing is made; what is there is left alone', async () => {
  await using box = await tree({ 'there/file': 'x' });
  const made = ['there/a', 'there/a/b c', 'there/a/b c/d'].map((path) => box.at(path));
  assert.equal(await makeFolder(box.at('there/a/b c/d')), made);
  assert.equal(await makeFolder(box.at('there/a/b c/d')), []);
  assert.ok((await stat(box.at('there/a/b c/d'))).isDirectory());
});

test('the outermost folder that was missing is returned, with the mode of all that are made', async () => {
  await using box = await tree({ 'there/file': 'x' });
  assert.is(await makeMissing(box.at('there/a/b'), 0o700), box.at('there/a'));
  assert.is((await stat(box.at('there/a'))).mode & 0o777, 0o700);
  assert.is(await makeMissing(box.at('there/a/b')), undefined);
  assert.is(await makeMissing(box.at('there/a/b/c')), box.at('there/a/b/c'));
  for (const [path, code] of [
    [box.at('there/file'), 'EEXIST'],
    [box.at('there/file/a'), 'ENOTDIR'],
    ['/proc/no-such-folder/a', 'ENOENT'],
  ] as const) {
    assert.is(await makeMissing(path).catch(errnoOf), code);
  }
});

test('a file, or a link to nothing, in the way is told', async () => {
  await using box = await tree({ file: 'x' });
  await symlink('nowhere', box.at('link'));
  for (const path of ['file', 'file/a', 'file/a/b', 'link', 'link/a']) {
    await assert.rejectsWith(makeFolder(box.at(path)), 'FILE_UNUSABLE', /^cannot create /);
  }
});

test('after an error, no new folder stays', async () => {
  await using box = await tree();
  const tooLong = box.at('a/b', 'x'.repeat(300), 'c');
  await assert.rejectsWith(makeFolder(tooLong), 'FILE_UNUSABLE');
  assert.equal(await readdir(box.path), []);
});

test('of the folders that were created, those that are still empty are removed', async () => {
  await using box = await tree();
  const made = [...(await makeFolder(box.at('a/b/c'))), ...(await makeFolder(box.at('a/d')))];
  await writeFile(box.at('a/b/file'), '');
  await removeEmpty(made);
  assert.equal((await readdir(box.path, { recursive: true })).toSorted(), ['a', 'a/b', 'a/b/file']);
});

test('where no folder can be made, that is said instead of trying for ever', async () => {
  for (const path of ['/proc/no-such-folder', '/proc/no-such-folder/var/lib/curlew']) {
    const error = await assert.rejectsWith(makeFolder(path), 'FILE_UNUSABLE', /cannot create a folder in \/proc/);
    assert.is(error.hint, 'use a folder on a disk');
  }
});

test.run();
