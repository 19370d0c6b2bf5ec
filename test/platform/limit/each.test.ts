import { eachLimited } from '../../../src/platform/limit/each.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { reportStep, type ProgressEvent } from '../../../src/core/events.ts';
import { createPlainLines } from '../../../src/cli/render/plain.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('work over many items');

test('only what failed is reported as failed, not what was stopped because of it', async ({ signal }) => {
  const line = createPlainLines(() => 0);
  const said: string[] = [];
  const report = (event: ProgressEvent): void => void said.push(line(event) ?? '');
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

test.run();
