import { CurlewError } from '../../../src/core/errors.ts';
import { createPlainLines } from '../../../src/cli/render/plain.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/plain');

test('a step is one line, at its end', () => {
  const { take } = createPlainLines(() => 0, '');
  assert.is(take({ type: 'step-started', id: 'a', title: 'web 1.0', bytes: 10 }), undefined);
  assert.is(take({ type: 'step-progress', id: 'a', bytes: 5 }), undefined);
  assert.is(take({ type: 'step-log', id: 'a', text: 'compiling' }), undefined);
  assert.is(take({ type: 'step-done', id: 'a', outcome: 'built' }), 'web 1.0: built');
});

test('where the result lists what was done, only what takes long or fails is a line', () => {
  let now = 0;
  const { take, waiting } = createPlainLines(() => now, '', { isListed: true });
  take({ type: 'step-started', id: 'a', title: 'web 1.0' });
  take({ type: 'step-started', id: 'b', title: 'db 1.0' });
  now = 10_000;
  assert.is(waiting(), 'web 1.0: 10 s; 1 more in progress');
  assert.is(take({ type: 'step-done', id: 'a', outcome: 'built' }), undefined);
  assert.is(take({ type: 'step-failed', id: 'b', error: new Error('no') }), 'db 1.0: failed');
});

test('after ten seconds without a line, one says what goes on', () => {
  let now = 0;
  const { take, waiting } = createPlainLines(() => now, 'build');
  now = 9999;
  assert.is(waiting(), undefined);
  now = 10_000;
  assert.is(waiting(), 'build: 10 s');
  assert.is(waiting(), undefined);
  take({ type: 'step-started', id: 'a', title: 'web', bytes: undefined });
  now = 20_000;
  assert.is(waiting(), 'web: 10 s');
  take({ type: 'step-progress', id: 'a', bytes: 4000, total: 9000 });
  take({ type: 'step-started', id: 'b', title: 'db' });
  now = 29_000;
  assert.is(take({ type: 'note', level: 'info', text: 'a note' }), 'a note');
  now = 38_000;
  assert.is(waiting(), undefined);
  now = 39_000;
  assert.is(waiting(), 'web: 4 kB of 9 kB, 29 s; 1 more in progress');
  take({ type: 'step-done', id: 'a', outcome: 'built' });
  take({ type: 'step-done', id: 'b', outcome: 'built' });
  now = 99_000;
  assert.is(waiting(), undefined);
});

test('what failed is named, but not what was canceled', () => {
  const { take } = createPlainLines(() => 0, '');
  take({ type: 'step-started', id: 'a', title: 'web 1.0' });
  assert.is(take({ type: 'step-failed', id: 'a', error: new Error('no') }), 'web 1.0: failed');
  assert.is(take({ type: 'step-failed', id: 'a', error: new CurlewError('CANCELLED', 'canceled') }), undefined);
});

test('nothing secret and nothing that drives a terminal passes', () => {
  const { take } = createPlainLines(() => 0, '');
  assert.is(
    take({ type: 'note', level: 'warning', text: 'from https://me:pass@host/x?sig=1 \u001b[2J' }),
    'warning: from https://host/x \\u001b[2J',
  );
});

test.run();
