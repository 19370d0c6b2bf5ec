import { readFile, symlink } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { openGrowingFile } from '../../../src/platform/files/growing-file.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('files/growing-file');

test('what one run has written is part of the digest of the next', async ({ signal }) => {
  await using box = await tree();
  {
    await using file = await openGrowingFile(box.at('f'), { signal });
    await file.append(Buffer.from('hello '));
    assert.is(await file.finish(), digestOf('hello '));
  }
  await using file = await openGrowingFile(box.at('f'), { signal });
  assert.is(file.size(), 6);
  await file.append(Buffer.from('world'));
  assert.is(await file.finish(), digestOf('hello world'));
  assert.is(await readFile(box.at('f'), 'utf8'), 'hello world');
});

test('a restart forgets everything', async ({ signal }) => {
  await using box = await tree({ f: 'old bytes' });
  await using file = await openGrowingFile(box.at('f'), { signal });
  await file.restart();
  assert.is(file.size(), 0);
  await file.append(Buffer.from('new'));
  assert.is(await file.finish(), digestOf('new'));
  assert.is(await readFile(box.at('f'), 'utf8'), 'new');
});

test('a link is not followed, and a folder is no file', async ({ signal }) => {
  await using box = await tree({ 'd/x': '', target: 'keep' });
  await symlink(box.at('target'), box.at('link'));
  await assert.rejectsWith(openGrowingFile(box.at('link'), { signal }), 'FILE_UNUSABLE');
  await assert.rejectsWith(openGrowingFile(box.at('d'), { signal }), 'FILE_UNUSABLE');
  assert.is(await readFile(box.at('target'), 'utf8'), 'keep');
});

test.run();
