import { createPartMemory } from '../../../src/ship/store/s3-parts.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { soon } from '../../support/held-work.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/store/s3-parts');

test('buffers go round between all uploads', async () => {
  const memory = createPartMemory({ size: 10, count: 2 });
  const [first, second] = [await memory.take(10, { signal: never }), await memory.take(3, { signal: never })];
  assert.equal([first.byteLength, second.byteLength], [10, 10]);
  const waiting = memory.take(10, { signal: never });
  memory.give(first);
  assert.is((await waiting).buffer, first.buffer);
});

test('parts that are larger than a buffer take as much of the memory as they have', async () => {
  const memory = createPartMemory({ size: 10, count: 4 });
  const [large] = [await memory.take(25, { signal: never }), await memory.take(10, { signal: never })];
  assert.is(large.byteLength, 25);
  let isTaken = false;
  const waiting = memory.take(10, { signal: never }).then(() => (isTaken = true));
  await soon();
  assert.is(isTaken, false);
  memory.give(large);
  await waiting;
  assert.is((await createPartMemory({ size: 10, count: 4 }).take(1000, { signal: never })).byteLength, 1000);
});

test.run();
