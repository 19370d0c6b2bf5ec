import { createAudience, createTurns } from '../../src/serve/turns.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { thrownBy } from '../support/faulty-store.ts';
import { suite } from '../support/suite.ts';

const test = suite('serve/turns');

/** Work that runs until it is let go. */
function held(): { readonly work: () => Promise<string>; readonly letGo: () => void; readonly isBegun: () => boolean } {
  let letGo = (): void => undefined;
  let isBegun = false;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const work = async (): Promise<string> => {
    isBegun = true;
    await gate;
    return 'done';
  };
  return { work, letGo: () => letGo(), isBegun: () => isBegun };
}

async function soon(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test('so many run, so many wait, and one more is refused', async () => {
  const turns = createTurns({ atOnce: 1, waiting: 1 });
  const [first, second] = [held(), held()];
  const ended = [turns(first.work, never), turns(second.work, never)];
  await soon();
  assert.equal([first.isBegun(), second.isBegun()], [true, false]);
  await assert.rejectsWith(turns(held().work, never), 'BUSY', /1 run and 1 wait already/);
  first.letGo();
  await ended[0];
  await soon();
  assert.is(second.isBegun(), true);
  second.letGo();
  assert.equal(await Promise.all(ended), ['done', 'done']);
});

test('work that fails makes room, and work that nobody wants any more never begins', async () => {
  const turns = createTurns({ atOnce: 1, waiting: 2 });
  const first = held();
  const running = turns(first.work, never);
  const gone = new AbortController();
  const unwanted = held();
  const left = thrownBy(turns(unwanted.work, gone.signal));
  gone.abort(new Error('gone'));
  assert.match(String(await left), 'gone');
  const failing = thrownBy(turns(async () => Promise.reject(new Error('broken')), never));
  first.letGo();
  await running;
  assert.match(String(await failing), 'broken');
  assert.is(await turns(async () => Promise.resolve('next'), never), 'next');
  assert.is(unwanted.isBegun(), false);
});

test('work is given up when the last of those who wait for it has gone', async () => {
  const emptied: string[] = [];
  const audience = createAudience({ onEmpty: (key) => emptied.push(key) });
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
  const audience = createAudience({ onEmpty: () => assert.unreachable() });
  const client = new AbortController();
  const first = await audience('key', client.signal, async (empty) => Promise.resolve(empty));
  client.abort();
  assert.is(first.aborted, false);
  assert.is.not(await audience('key', never, async (empty) => Promise.resolve(empty)), first);
});

test.run();
