import { CurlewError } from '../../../src/core/errors.ts';
import { firstAnswer } from '../../../src/platform/limit/first-answer.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/limit/first-answer');
const refusal = new CurlewError('CLUSTER_FAILED', 'no');

/** Ends only when it is no longer asked. */
async function silent(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}

test('only the first is asked while it answers in time', async () => {
  const asked: string[] = [];
  const { found } = await firstAnswer(['a', 'b'], async (one) => asked.push(one), {
    patienceMs: 60_000,
    signal: never,
  });
  assert.equal([found?.item, asked], ['a', ['a']]);
});

test('the others are asked once the first has failed or is late, and nobody is waited for after an answer', async () => {
  const asked: string[] = [];
  const ask = async (one: string, { signal }: { readonly signal: AbortSignal }): Promise<string> => {
    asked.push(one);
    if (one === 'late') return silent(signal);
    if (one === 'bad') throw refusal;
    return `${one} says`;
  };
  const failed = await firstAnswer(['bad', 'late', 'good'], ask, { patienceMs: 60_000, signal: never });
  assert.equal([failed.found?.answer, failed.failures.map(({ item }) => item)], ['good says', ['bad']]);
  assert.is((await firstAnswer(['late', 'good'], ask, { patienceMs: 1, signal: never })).found?.item, 'good');
  const none = await firstAnswer(['bad', 'bad'], ask, { patienceMs: 60_000, signal: never });
  assert.equal([none.found, none.failures.length], [undefined, 2]);
});

test('a mistake of the program is no failure of who was asked', async () => {
  const ask = async (): Promise<never> => Promise.reject(new TypeError('a mistake'));
  const thrown = await firstAnswer(['a', 'b'], ask, { patienceMs: 60_000, signal: never }).catch(
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof TypeError);
});

test.run();
