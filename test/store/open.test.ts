import { openStore } from '../../src/store/open.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('store/open');

test('a folder is opened from where the user is, and made for those who write', async ({ signal }) => {
  await using box = await tree();
  await assert.rejectsWith(openStore('store', { cwd: box.path, create: false, signal }), 'NOT_FOUND');
  assert.is((await openStore('store', { cwd: box.path, create: true, signal })).address, box.at('store'));
  assert.is((await openStore('store', { cwd: box.path, create: false, signal })).address, box.at('store'));
});

test('a file is no store', async ({ signal }) => {
  await using box = await tree({ file: '' });
  await assert.rejectsWith(openStore('file', { cwd: box.path, create: false, signal }), 'FILE_UNUSABLE');
  await assert.rejectsWith(openStore('file/x', { cwd: box.path, create: true, signal }), 'FILE_UNUSABLE');
});

for (const address of ['https://user:secret@host/dist', 'ftp://x']) {
  test(`${address.split(':', 1)[0]}:// says that it is not supported`, async ({ signal }) => {
    const error = await assert.rejectsWith(openStore(address, { cwd: '/', create: true, signal }), 'UNSUPPORTED');
    assert.not.match(error.message, 'secret');
  });
}

test.run();
