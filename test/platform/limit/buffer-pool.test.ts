import { createBufferPool } from '../../../src/platform/limit/buffer-pool.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/limit/buffer-pool');

test('memory is of one chunk until it is given back, whole or in part, and used again then', () => {
  const pool = createBufferPool({ size: 8 });
  const [first, second] = [pool.allocate(8), pool.allocate(4)];
  assert.equal([first.byteLength, second.byteLength, first.buffer === second.buffer], [8, 4, false]);
  pool.giveBack(first.subarray(2, 3));
  assert.is(pool.allocate(1).buffer, first.buffer);
});

test('no chunk is larger than a buffer', () => {
  assert.is(createBufferPool({ size: 8 }).allocate(100).byteLength, 8);
});

test('memory of others, and what was given back before, is left alone', () => {
  const pool = createBufferPool({ size: 8 });
  const [own, other] = [pool.allocate(8), new Uint8Array(8)];
  for (const chunk of [own, own, other]) pool.giveBack(chunk);
  const next = [pool.allocate(8), pool.allocate(8)];
  assert.is(next[0]?.buffer, own.buffer);
  assert.ok(next[1]?.buffer !== own.buffer && next[1]?.buffer !== other.buffer);
});

test('no more buffers are kept than are wanted', () => {
  const pool = createBufferPool({ size: 8, maxFree: 1 });
  const [first, second] = [pool.allocate(8), pool.allocate(8)];
  pool.giveBack(first);
  pool.giveBack(second);
  assert.is(pool.allocate(8).buffer, first.buffer);
  assert.ok(pool.allocate(8).buffer !== second.buffer);
});

test.run();
