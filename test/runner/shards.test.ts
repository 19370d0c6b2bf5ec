import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { readShard, shardOf } from './shards.ts';

const test = suite('runner/shards');
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const TIMES = { a: 90, b: 40, c: 30, d: 20 };

test('shards take about the same time, and together have each file once, whatever the order that files are found in', () => {
  const shards = [1, 2].map((number) => shardOf(NAMES, TIMES, { number, of: 2 }));
  assert.equal(shards, [
    ['a', 'b'],
    ['e', 'f', 'c', 'd'],
  ]);
  assert.equal(
    [1, 2].map((number) => shardOf(NAMES.toReversed(), TIMES, { number, of: 2 })),
    shards,
  );
});

test('without times, and with more shards than files, each file is still in one', () => {
  for (const of of [1, 4, 9]) {
    const all = Array.from({ length: of }, (_, index) => shardOf(NAMES, {}, { number: index + 1, of }));
    assert.equal(all.flat().toSorted(), NAMES);
  }
});

test('a shard is a number of so many', () => {
  assert.equal(readShard('2/3'), { number: 2, of: 3 });
  for (const text of ['0/2', '3/2', '1', '1/2/3', 'a/b', '']) {
    let message = '';
    try {
      readShard(text);
    } catch (error) {
      message = error instanceof Error ? error.message : '';
    }
    assert.is(message, `--shard is like 1/2, not ${text}`);
  }
});

test.run();
