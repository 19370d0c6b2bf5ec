import { createSingleFlightCache } from '../../../src/platform/limit/single-flight-cache.ts';
import * as assert from '../../support/assert.ts';
import { thrownBy } from '../../support/faulty-store.ts';
import { held } from '../../support/held-work.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/limit/single-flight-cache');

test('a value is made once, however many ask for it, and kept', async () => {
  const cache = createSingleFlightCache<number>();
  let made = 0;
  const make = async (): Promise<number> => Promise.resolve((made += 1));
  assert.equal(await Promise.all([cache.get('a', make), cache.get('a', make)]), [1, 1]);
  assert.equal([await cache.get('a', make), await cache.get('b', make)], [1, 2]);
  cache.drop('a');
  assert.is(await cache.get('a', make), 3);
});

test('a failure goes to all who wait for it, and is not kept', async () => {
  const cache = createSingleFlightCache<number>();
  let tries = 0;
  const fail = async (): Promise<number> => Promise.reject(new Error(`failure ${(tries += 1)}`));
  const all = await Promise.all([thrownBy(cache.get('a', fail)), thrownBy(cache.get('a', fail))]);
  assert.equal(all.map(String), ['Error: failure 1', 'Error: failure 1']);
  assert.is(await cache.get('a', async () => Promise.resolve(7)), 7);
});

test('where a failure is its own, those who wait try for themselves', async () => {
  const cache = createSingleFlightCache<number>({ failures: 'own' });
  const first = thrownBy(cache.get('a', async () => Promise.reject(new Error('cancelled'))));
  const second = cache.get('a', async () => Promise.resolve(2));
  assert.is(String(await first), 'Error: cancelled');
  assert.is(await second, 2);
  assert.is(await cache.get('a', async () => Promise.resolve(3)), 2);
});

test('what is too much goes, the least recently used first, but never the last value', async () => {
  const cache = createSingleFlightCache<number>({ most: 10, weigh: (value) => value });
  const made: string[] = [];
  const get = async (key: string, weight: number): Promise<number> =>
    cache.get(key, async () => {
      made.push(key);
      return Promise.resolve(weight);
    });
  await get('a', 4);
  await get('b', 4);
  await get('a', 4);
  await get('c', 4);
  assert.equal([cache.size(), cache.weight()], [2, 8]);
  await get('a', 4);
  await get('b', 4);
  assert.equal(made, ['a', 'b', 'c', 'b']);
  await get('giant', 100);
  assert.equal([cache.size(), cache.weight()], [1, 100]);
});

test('an old value is made again; its age counts from the beginning, and nobody waits twice', async () => {
  let time = 0;
  const cache = createSingleFlightCache<number>({ freshMs: 10, now: () => time });
  let made = 0;
  const slow = held();
  const first = cache.get('a', async () => {
    await slow.work();
    return (made += 1);
  });
  time = 50;
  const second = cache.get('a', async () => Promise.resolve((made += 1)));
  slow.letGo();
  assert.equal([await first, await second], [1, 1]);
  assert.is(await cache.get('a', async () => Promise.resolve((made += 1))), 2);
  time = 59;
  assert.is(await cache.get('a', async () => Promise.resolve((made += 1))), 2);
  time = 60;
  assert.is(await cache.get('a', async () => Promise.resolve((made += 1))), 3);
  assert.is(cache.weight(), 1);
});

test('drained, it has nothing any more, and hands back also what was being made', async () => {
  const cache = createSingleFlightCache<string>();
  await cache.get('a', async () => Promise.resolve('a'));
  const slow = held();
  const making = cache.get('b', slow.work);
  const failing = thrownBy(cache.get('c', async () => Promise.reject(new Error('broken'))));
  const drained = cache.drain();
  slow.letGo();
  assert.equal(await drained, ['a', 'done']);
  assert.is(await making, 'done');
  await failing;
  assert.equal([cache.size(), cache.weight()], [0, 0]);
});

test.run();
