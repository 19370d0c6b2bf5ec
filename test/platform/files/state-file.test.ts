import { execa } from 'execa';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { readFound, readGivenFile, readStateFile, writeStateFile } from '../../../src/platform/files/state-file.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('state files');

test('what is written is read; what is not there is nothing', async () => {
  await using box = await tree();
  await writeStateFile(box.at('a'), 'ü\n');
  assert.is(await readStateFile(box.at('a'), 3), 'ü\n');
  assert.is((await stat(box.at('a'))).mode & 0o777, 0o600);
  assert.is(await readStateFile(box.at('b'), 3), undefined);
});

test('the limit holds for files, and for given devices and pipes that tell no size', async () => {
  await using box = await tree({ a: 'abcd' });
  await assert.rejectsWith(readStateFile(box.at('a'), 3), 'FILE_UNUSABLE', /larger than 3 bytes/);
  await assert.rejectsWith(readGivenFile('/dev/zero', 1 << 20), 'FILE_UNUSABLE', /larger than 1048576 bytes/);
  await execa('mkfifo', [box.at('pipe')]);
  const read = readGivenFile(box.at('pipe'), 10);
  await writeFile(box.at('pipe'), 'through');
  assert.is(await read, 'through');
});

test('a pipe or a device where a file is looked for is refused, and not waited for', async () => {
  await using box = await tree({ 'folder/file': '' });
  await execa('mkfifo', [box.at('pipe')]);
  await assert.rejectsWith(readStateFile(box.at('pipe'), 10), 'FILE_UNUSABLE', /pipe: not a regular file/);
  await assert.rejectsWith(readFound('/dev/zero', 10), 'FILE_UNUSABLE', /zero: not a regular file/);
  await assert.rejectsWith(readFound(box.at('folder'), 10), 'FILE_UNUSABLE', /it is a folder/);
});

test('a file that cannot be written leaves no part behind', async () => {
  await using box = await tree({ 'folder/x': '' });
  await assert.rejectsWith(writeStateFile(box.at('folder'), 'x'), 'FILE_UNUSABLE', /write .*folder/);
  assert.equal(await readdir(box.path), ['folder']);
});

test.run();
