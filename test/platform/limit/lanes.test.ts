import { createLanes } from '../../../src/platform/limit/lanes.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { thrownBy } from '../../support/faulty-store.ts';
import { suite } from '../../support/suite.ts';

const test = suite('core/lanes');

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

test('so many run, the others wait, and those that have waited too long are refused', async () => {
  const lanes = createLanes(1, { patienceMs: 200 });
  const [first, second] = [held(), held()];
  const ended = [lanes.run(first.work, never), lanes.run(second.work, never)];
  await soon();
  assert.equal([first.isBegun(), second.isBegun()], [true, false]);
  first.letGo();
  await ended[0];
  await soon();
  assert.is(second.isBegun(), true);
  const third = held();
  await assert.rejectsWith(lanes.run(third.work, never), 'BUSY', /no place was free for 200 ms: 1 run, 0 others wait/);
  second.letGo();
  assert.equal(await Promise.all(ended), ['done', 'done']);
  assert.is(await lanes.run(async () => Promise.resolve('next'), never), 'next');
  assert.is(third.isBegun(), false);
});

test('work that fails makes room, and work that nobody wants any more never begins', async () => {
  const lanes = createLanes(1);
  const first = held();
  const running = lanes.run(first.work, never);
  const gone = new AbortController();
  const unwanted = held();
  const left = thrownBy(lanes.run(unwanted.work, gone.signal));
  gone.abort(new Error('gone'));
  assert.match(String(await left), 'gone');
  const failing = thrownBy(lanes.run(async () => Promise.reject(new Error('broken')), never));
  first.letGo();
  await running;
  assert.match(String(await failing), 'broken');
  assert.is(await lanes.run(async () => Promise.resolve('next'), never), 'next');
  assert.is(unwanted.isBegun(), false);
});

test.run();
