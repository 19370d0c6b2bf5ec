import { createTurns } from '../../../src/runtime/images/turns.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';

const test = suite('turns of image loads');

/** Work that goes on until it is told to end; `log` has what began. */
function work(log: string[], name: string): { readonly run: () => Promise<string>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const run = async (): Promise<string> => {
    log.push(name);
    await ended;
    return name;
  };
  return { run, end: () => end() };
}

/** Until everything that can happen has happened. */
async function settled(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

test('not more than so many work at once, and none beside one that brings the same layer', async () => {
  const log: string[] = [];
  const turns = createTurns(2);
  const [a, b, c, d] = [work(log, 'a'), work(log, 'b'), work(log, 'c'), work(log, 'd')];
  const all = [
    turns(['base', 'a'], a.run, { signal: never }),
    turns(['base', 'b'], b.run, { signal: never }),
    turns(['other'], c.run, { signal: never }),
    turns([], d.run, { signal: never }),
  ];
  await settled();
  assert.equal(log, ['a', 'c'], 'the second waits for its base, the fourth for room');
  a.end();
  await settled();
  assert.equal(log, ['a', 'c', 'b']);
  c.end();
  b.end();
  d.end();
  assert.equal(await Promise.all(all), ['a', 'b', 'c', 'd']);
});

test('whoever fails lets the next one go, and whoever gives up is not waited for', async () => {
  const log: string[] = [];
  const turns = createTurns(1);
  const stop = new AbortController();
  const first = turns(['x'], async () => Promise.reject(new Error('failed')), { signal: never });
  const second = turns(['x'], work(log, 'second').run, { signal: stop.signal });
  const third = work(log, 'third');
  third.end();
  const last = turns(['x'], third.run, { signal: never });
  stop.abort(new Error('gave up'));
  const [one, two, three] = await Promise.allSettled([first, second, last]);
  assert.is(one.status === 'rejected' && String(one.reason), 'Error: failed');
  assert.is(two.status === 'rejected' && String(two.reason), 'Error: gave up');
  assert.is(three.status === 'fulfilled' && three.value, 'third');
  assert.equal(log, ['third']);
});

test.run();
