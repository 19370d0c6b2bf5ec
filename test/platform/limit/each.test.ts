import { eachLimited, mapLimited } from '../../../src/platform/limit/each.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { reportStep, type ProgressEvent } from '../../../src/core/events.ts';
import { createPlainLines } from '../../../src/cli/render/plain.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('work over many items');

test('only what failed is reported as failed, not what was stopped because of it', async ({ signal }) => {
  const { take } = createPlainLines(() => 0, '');
  const said: string[] = [];
  const report = (event: ProgressEvent): void => void said.push(take(event) ?? '');
  const waiting = async (own: AbortSignal): Promise<never> =>
    new Promise((_, reject) => own.addEventListener('abort', () => reject(own.reason as Error), { once: true }));
  const work = async (id: string, { signal: own }: { readonly signal: AbortSignal }): Promise<void> => {
    const step = async (): Promise<void> => {
      if (id !== 'web') return waiting(own);
      throw new CurlewError('FETCH_FAILED', 'no such host');
    };
    await reportStep(report, { id, title: id }, step, () => 'built');
  };
  const all = eachLimited(['motd', 'web'], work, { width: 2, signal });
  await assert.rejectsWith(all, 'FETCH_FAILED', /^no such host$/);
  assert.equal(
    said.filter((text) => text !== ''),
    ['web: failed'],
  );
});

test('so many at once, and the results in the order of the items', async ({ signal }) => {
  let running = 0;
  let most = 0;
  const work = async (item: number): Promise<number> => {
    running += 1;
    most = Math.max(most, running);
    for (let rounds = item; rounds > 0; rounds -= 1) await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return item * 2;
  };
  assert.equal(await mapLimited([5, 1, 4, 2, 3], work, { width: 2, signal }), [10, 2, 8, 4, 6]);
  assert.is(most, 2);
});

test('after an abort nothing more begins, and its reason is thrown when what runs has ended', async () => {
  const stop = new AbortController();
  const log: string[] = [];
  const work = async (item: string): Promise<void> => {
    log.push(`begin ${item}`);
    stop.abort(new Error('enough'));
    await new Promise((resolve) => setImmediate(resolve));
    log.push(`end ${item}`);
  };
  let thrown = '';
  await eachLimited(['a', 'b', 'c'], work, { width: 1, signal: stop.signal }).catch((error: unknown) => {
    thrown = String(error);
  });
  assert.equal([thrown, log], ['Error: enough', ['begin a', 'end a']]);
});

test.run();
