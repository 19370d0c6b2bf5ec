import * as assert from '../support/assert.ts';
import { chunksOf } from '../../src/build/docker-archives.ts';
import { suite } from '../support/suite.ts';

const test = suite('build/chunks');

test('chunks arrive in order, and the sender may use its buffer again', async () => {
  const buffer = Buffer.alloc(1);
  const chunks = chunksOf(async (write) => {
    for (let value = 0; value < 5; value += 1) {
      buffer[0] = value;
      await write(buffer);
    }
  });
  const seen: number[] = [];
  for await (const chunk of chunks) seen.push(chunk[0] ?? -1);
  assert.equal(seen, [0, 1, 2, 3, 4]);
});

test("the sender's failure comes after what it sent", async () => {
  const chunks = chunksOf(async (write) => {
    await write(Buffer.of(1));
    throw new Error('broken');
  });
  const seen: number[] = [];
  let message = '';
  try {
    for await (const chunk of chunks) seen.push(chunk[0] ?? -1);
  } catch (error) {
    message = String(error);
  }
  assert.equal([seen, message], [[1], 'Error: broken']);
});

test.run();
