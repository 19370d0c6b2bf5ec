import { readdir } from 'node:fs/promises';
import { openStore } from '../../../src/ship/store/open.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/store/open');

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

test('what a scheme is answered with is what the command reads, and for a file its path', async ({ signal }) => {
  const http = async (): Promise<never> => Promise.reject(new Error('no web server is asked'));
  const hintOf = async (address: string): Promise<string | undefined> =>
    (await assert.rejectsWith(openStore(address, { cwd: '/', create: false, http, signal }), 'UNSUPPORTED')).hint;
  assert.is(await hintOf('ftp://foo/bar'), 'use a folder, s3://bucket/prefix or the URL of a web server');
  assert.is(await hintOf('file:///home/u/store'), 'write the path alone: /home/u/store');
});

test('the scheme of a bucket may be written in capitals, and its address is the same', async ({ signal }) => {
  for (const address of ['s3://bucket/dist', 'S3://bucket/dist/'])
    assert.is((await openStore(address, { cwd: '/', create: false, signal })).address, 's3://bucket/dist');
});

test('a store of a web server is refused where it is not read, with what makes bundles of it', async ({ signal }) => {
  const opened = openStore('https://host/dist', { cwd: '/', create: false, signal });
  const { hint } = await assert.rejectsWith(opened, 'UNSUPPORTED', /this command does not read stores of web servers$/);
  assert.match(hint ?? '', /^use a folder or s3:\/\/bucket\/prefix, .*curlew pull downloads: curlew help serving$/);
  const file = openStore('https://host/b.tar.gz', { cwd: '/', create: false, signal });
  assert.match(
    (await assert.rejectsWith(file, 'UNSUPPORTED')).hint ?? '',
    'curlew pull https://host/b.tar.gz downloads it',
  );
  const published = openStore('https://host/dist', { cwd: '/', create: true, signal });
  const written = /this command does not write stores of web servers$/;
  assert.is((await assert.rejectsWith(published, 'UNSUPPORTED', written)).hint, 'use a folder or s3://bucket/prefix');
});

test('an address with a slash missing is refused, and no folder of that name is made', async ({ signal }) => {
  await using box = await tree();
  for (const [address, hint] of [
    ['s3:/bucket/dist', 'write s3://, or ./s3:/ for a folder of that name'],
    ['S3:bucket', 'write s3://, or ./S3: for a folder of that name'],
    ['https:/user:secret@host/dist', 'write https://, or ./https:/ for a folder of that name'],
  ] as const) {
    const error = await assert.rejectsWith(openStore(address, { cwd: box.path, create: true, signal }), 'USAGE');
    assert.is(error.hint, hint);
    assert.not.match(error.message, 'secret');
  }
  assert.equal(await readdir(box.path), []);
  const meant = await openStore('./s3:/bucket', { cwd: box.path, create: true, signal });
  assert.is(meant.address, box.at('s3:/bucket'));
});

test.run();
