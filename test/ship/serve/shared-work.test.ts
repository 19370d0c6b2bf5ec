import * as assert from '../../support/assert.ts';
import { createSharedWork } from '../../../src/ship/serve/bundles.ts';
import { never } from '../../support/context.ts';
import { thrownBy } from '../../support/faulty-store.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/serve/audience');

async function soon(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test('work is given up when the last of those who wait for it has gone', async () => {
  const emptied: string[] = [];
  const audience = createSharedWork({ onEmpty: (key) => emptied.push(key) });
  const clients = [new AbortController(), new AbortController()];
  let shared: AbortSignal | undefined;
  const all = clients.map(async ({ signal }) =>
    thrownBy(
      audience('key', signal, async (empty) => {
        shared ??= empty;
        assert.is(shared, empty);
        return new Promise((_, reject) => empty.addEventListener('abort', () => reject(new Error('given up'))));
      }),
    ),
  );
  await soon();
  clients[0]?.abort();
  assert.equal([shared?.aborted, emptied], [false, []]);
  clients[1]?.abort();
  assert.equal([shared?.aborted, emptied], [true, ['key']]);
  for (const error of await Promise.all(all)) assert.match(String(error), 'given up');
});

test('who leaves after the work is done stops nothing, and the next begins with another signal', async () => {
  const audience = createSharedWork({ onEmpty: () => assert.unreachable() });
  const client = new AbortController();
  const first = await audience('key', client.signal, async (empty) => Promise.resolve(empty));
  client.abort();
  assert.is(first.aborted, false);
  assert.is.not(await audience('key', never, async (empty) => Promise.resolve(empty)), first);
});

test.run();
