import { getEventListeners } from 'node:events';
import { createSemaphore } from '../../../src/platform/limit/semaphore.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { held, soon } from '../../support/held-work.ts';
import { thrownBy } from '../../support/faulty-store.ts';

const test = suite('platform/limit/semaphore');

test('so many run, the others wait, and those that have waited too long are refused', async () => {
  const semaphore = createSemaphore(1, { patienceMs: 200 });
  const [first, second] = [held(), held()];
  const ended = [semaphore.run(first.work), semaphore.run(second.work)];
  await soon();
  assert.equal([first.isBegun(), second.isBegun()], [true, false]);
  first.letGo();
  await ended[0];
  await soon();
  assert.is(second.isBegun(), true);
  const third = held();
  await assert.rejectsWith(
    semaphore.run(third.work),
    'BUSY',
    /no slot was free for 200 ms \(limit 1, 0 others waiting\)/,
  );
  second.letGo();
  assert.equal(await Promise.all(ended), ['done', 'done']);
  assert.is(await semaphore.run(async () => Promise.resolve('next')), 'next');
  assert.is(third.isBegun(), false);
});

test('work that fails makes room, and work that nobody wants any more never begins', async () => {
  const semaphore = createSemaphore(1);
  const first = held();
  const running = semaphore.run(first.work);
  const gone = new AbortController();
  const unwanted = held();
  const left = thrownBy(semaphore.run(unwanted.work, { signal: gone.signal }));
  await soon();
  gone.abort(new Error('gone'));
  assert.match(String(await left), 'gone');
  assert.is(getEventListeners(gone.signal, 'abort').length, 0);
  const failing = thrownBy(semaphore.run(async () => Promise.reject(new Error('broken'))));
  first.letGo();
  await running;
  assert.match(String(await failing), 'broken');
  assert.is(await semaphore.run(async () => Promise.resolve('next')), 'next');
  assert.is(unwanted.isBegun(), false);
});

test('no more work runs at once than there are places', async () => {
  const semaphore = createSemaphore(2);
  let running = 0;
  let most = 0;
  const work = Array.from({ length: 6 }, async () =>
    semaphore.run(async () => {
      running += 1;
      most = Math.max(most, running);
      await soon();
      running -= 1;
    }),
  );
  await Promise.all(work);
  assert.is(most, 2);
});

test('heavy work waits for all it needs, and is not overtaken by light work that comes later', async () => {
  const semaphore = createSemaphore(10);
  const [light, heavy, later] = [held(), held(), held()];
  const ended = [
    semaphore.run(light.work, { weight: 6 }),
    semaphore.run(heavy.work, { weight: 8 }),
    semaphore.run(later.work, { weight: 2 }),
  ];
  await soon();
  assert.equal([light.isBegun(), heavy.isBegun(), later.isBegun()], [true, false, false]);
  light.letGo();
  await soon();
  assert.equal([heavy.isBegun(), later.isBegun()], [true, true]);
  heavy.letGo();
  later.letGo();
  await Promise.all(ended);
});

test('work that is heavier than everything has everything', async () => {
  const semaphore = createSemaphore(10);
  const [light, giant] = [held(), held()];
  const ended = [semaphore.run(light.work), semaphore.run(giant.work, { weight: 1000 })];
  await soon();
  assert.is(giant.isBegun(), false);
  light.letGo();
  await soon();
  assert.is(giant.isBegun(), true);
  giant.letGo();
  await Promise.all(ended);
  await semaphore.acquire({ weight: 10 });
});

test('when heavy work gives up, the light work behind it begins', async () => {
  const semaphore = createSemaphore(2);
  await semaphore.acquire();
  const gone = new AbortController();
  const heavy = thrownBy(semaphore.acquire({ weight: 2, signal: gone.signal }));
  const light = held();
  const running = semaphore.run(light.work);
  await soon();
  assert.is(light.isBegun(), false);
  gone.abort(new Error('gone'));
  await heavy;
  await soon();
  assert.is(light.isBegun(), true);
  light.letGo();
  await running;
});

test.run();
