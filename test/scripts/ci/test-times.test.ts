/** The times of test files, between the shards of a run and from one run to the next. */
import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('scripts/ci/test-times');
const SCRIPT = join(import.meta.dirname, '../../../scripts/ci/test-times');

async function timesAfter(box: Tree, ...folders: readonly string[]): Promise<unknown> {
  await execa(SCRIPT, folders, { cwd: box.path });
  return JSON.parse(await readFile(box.at('.curlew/test-times.json'), 'utf8')) as unknown;
}

test('the first run has no times, a later one those that were kept', async () => {
  await using box = await tree();
  assert.equal(await timesAfter(box), {});
  await using later = await tree({ '.curlew/test-times.json': '{"a": 1}' });
  assert.equal(await timesAfter(later), { a: 1 });
});

test('each shard gives the times that it measured, and leaves those of the other', async () => {
  await using box = await tree({
    'before/test-times.json': '{"a": 1, "b": 2, "c": 3}',
    'one/test-times.json': '{"a": 10, "b": 2, "c": 3}',
    'two/test-times.json': '{"a": 1, "b": 20, "c": 3, "d": 4}',
  });
  assert.equal(await timesAfter(box, 'before', 'one', 'two'), { a: 10, b: 20, c: 3, d: 4 });
});

test('a shard without times is an error', async () => {
  await using box = await tree({ 'before/test-times.json': '{}' });
  const { exitCode, stderr } = await execa(SCRIPT, ['before', 'one'], { cwd: box.path, reject: false });
  assert.is(exitCode, 1);
  assert.match(stderr, 'one/test-times.json');
});

test.run();
