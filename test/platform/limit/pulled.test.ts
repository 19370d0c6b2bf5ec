import * as assert from '../../support/assert.ts';
import { pulled } from '../../../src/platform/limit/pulled.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/limit/pulled');
const { signal } = new AbortController();

test('chunks arrive in order, and the sender may use its buffer again', async () => {
  const buffer = Buffer.alloc(1);
  const chunks = pulled(
    async (write) => {
      for (let value = 0; value < 5; value += 1) {
        buffer[0] = value;
        await write(buffer);
      }
    },
    { signal },
  );
  const seen: number[] = [];
  for await (const chunk of chunks) seen.push(chunk[0] ?? -1);
  assert.equal(seen, [0, 1, 2, 3, 4]);
});

test("the sender's failure comes after what it sent", async () => {
  const chunks = pulled(
    async (write) => {
      await write(Buffer.of(1));
      throw new Error('broken');
    },
    { signal },
  );
  const seen: number[] = [];
  let message = '';
  try {
    for await (const chunk of chunks) seen.push(chunk[0] ?? -1);
  } catch (error) {
    message = String(error);
  }
  assert.equal([seen, message], [[1], 'Error: broken']);
});

test('a sender that ends before its chunk is taken ends the reader', async () => {
  const chunks = pulled(
    async (write) => {
      void write(Buffer.of(1));
      return Promise.resolve();
    },
    { signal },
  );
  const seen: number[] = [];
  for await (const chunk of chunks) {
    await new Promise(setImmediate);
    seen.push(chunk[0] ?? -1);
  }
  assert.equal(seen, [1]);
});

test('a reader that stops aborts the sender, and lets it end', async () => {
  let ended: unknown;
  const chunks = pulled(
    async (write, context) => {
      await write(Buffer.of(1));
      ended = context.signal.aborted;
    },
    { signal },
  );
  for await (const chunk of chunks) if (chunk[0] === 1) break;
  await Promise.resolve();
  assert.equal(ended, true);
});

test.run();
