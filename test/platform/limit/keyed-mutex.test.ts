import { getEventListeners } from 'node:events';
import { createKeyedMutex } from '../../../src/platform/limit/keyed-mutex.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { held, soon } from '../../support/held-work.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/limit/keyed-mutex');

test('none runs beside one that has a key of its own, and the others overtake it', async () => {
  const mutex = createKeyedMutex();
  const all = [held(), held(), held(), held()] as const;
  const [a, b, c, d] = all;
  const options = { signal: never };
  const ended = [
    mutex.run(['base', 'a'], a.work, options),
    mutex.run(['base', 'b'], b.work, options),
    mutex.run(['other'], c.work, options),
    mutex.run([], d.work, options),
  ];
  const begun = (): readonly boolean[] => all.map((one) => one.isBegun());
  await soon();
  assert.equal(begun(), [true, false, true, true]);
  a.letGo();
  await soon();
  assert.equal(begun(), [true, true, true, true]);
  for (const one of all) one.letGo();
  assert.equal(await Promise.all(ended), ['done', 'done', 'done', 'done']);
});

test('those of one key run in their order', async () => {
  const mutex = createKeyedMutex();
  const log: number[] = [];
  const work = [1, 2, 3].map(async (number) =>
    mutex.run(
      ['x'],
      async () => {
        await soon();
        log.push(number);
      },
      { signal: never },
    ),
  );
  await Promise.all(work);
  assert.equal(log, [1, 2, 3]);
});

test('whoever fails lets the next one go, and whoever gives up is not waited for', async () => {
  const mutex = createKeyedMutex();
  const stop = new AbortController();
  const unwanted = held();
  const first = mutex.run(['x'], async () => Promise.reject(new Error('failed')), { signal: never });
  const second = mutex.run(['x'], unwanted.work, { signal: stop.signal });
  const last = mutex.run(['x'], async () => Promise.resolve('third'), { signal: never });
  stop.abort(new Error('gave up'));
  const [one, two, three] = await Promise.allSettled([first, second, last]);
  assert.is(one.status === 'rejected' && String(one.reason), 'Error: failed');
  assert.is(two.status === 'rejected' && String(two.reason), 'Error: gave up');
  assert.is(three.status === 'fulfilled' && three.value, 'third');
  assert.equal([unwanted.isBegun(), getEventListeners(stop.signal, 'abort').length], [false, 0]);
});

test.run();
