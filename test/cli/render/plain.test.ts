import { CurlewError } from '../../../src/core/errors.ts';
import { createPlainLines } from '../../../src/cli/render/plain.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/plain');

test('a step is one line, at its end', () => {
  const line = createPlainLines(() => 0);
  assert.is(line({ type: 'step-started', id: 'a', title: 'web 1.0', bytes: 10 }), undefined);
  assert.is(line({ type: 'step-progress', id: 'a', bytes: 5 }), undefined);
  assert.is(line({ type: 'step-log', id: 'a', text: 'compiling' }), undefined);
  assert.is(line({ type: 'step-done', id: 'a', outcome: 'built' }), 'web 1.0: built');
});

test('a long step gives a sign of life every thirty seconds', () => {
  let now = 0;
  const line = createPlainLines(() => now);
  line({ type: 'step-started', id: 'a', title: 'web', bytes: undefined });
  now = 29_000;
  assert.is(line({ type: 'step-progress', id: 'a', bytes: 1000 }), undefined);
  now = 31_000;
  assert.is(line({ type: 'step-progress', id: 'a', bytes: 2000 }), 'web: 2 kB');
  assert.is(line({ type: 'step-progress', id: 'a', bytes: 3000, total: 9000 }), undefined);
  now = 62_000;
  assert.is(line({ type: 'step-progress', id: 'a', bytes: 4000 }), 'web: 4 kB of 9 kB');
});

test('what failed is named, but not what was canceled', () => {
  const line = createPlainLines(() => 0);
  line({ type: 'step-started', id: 'a', title: 'web 1.0' });
  assert.is(line({ type: 'step-failed', id: 'a', error: new Error('no') }), 'web 1.0: failed');
  assert.is(line({ type: 'step-failed', id: 'a', error: new CurlewError('CANCELLED', 'cancelled') }), undefined);
});

test('nothing secret and nothing that drives a terminal passes', () => {
  const line = createPlainLines(() => 0);
  assert.is(
    line({ type: 'note', level: 'warning', text: 'from https://me:pass@host/x?sig=1 \u001b[2J' }),
    'warning: from https://host/x \\u001b[2J',
  );
});

test.run();
