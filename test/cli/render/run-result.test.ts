import { NO_PAINT, paintFor } from '../../../src/cli/render/paint.ts';
import { renderNodeResult } from '../../../src/cli/render/run-result.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/run-result');

/** The arguments of a run on this machine. */
const GIVEN = { request: {} };

const RESULT = {
  run: '20261121T101500Z-3f2a',
  addons: [
    { name: 'web', version: '1.0.0', outcome: 'installed', because: 'not installed yet', seconds: 75.4 },
    { name: 'db', version: '2.0.0', outcome: 'already applied', because: 'nothing has changed', seconds: 0.2 },
    { name: 'old', version: '1', outcome: 'removed', because: 'not in the spec', leaves: 'its changes' },
  ],
  images: { loaded: [], skipped: undefined },
  messages: [],
  stays: [],
  seconds: 80,
} as const;

test('each add-on is a line with its outcome and the time of its hooks', () => {
  const [web, db, old] = renderNodeResult(RESULT, NO_PAINT, GIVEN).split('\n');
  assert.equal(
    [web, db, old],
    [
      'web  1.0.0  installed (not installed yet), 75.4 s',
      'db   2.0.0  already applied (nothing has changed), 0.2 s',
      'old  1      removed (not in the spec)',
    ],
  );
});

test('an upgrade shows both versions, and how to return on the same node', () => {
  const web = { name: 'web', version: '1.1.0', outcome: 'installed', because: 'version 1.0.0 was installed' } as const;
  const db = { ...web, name: 'db', replaces: '1.0.0', because: 'requested by an operator', seconds: 1 } as const;
  const addons = [{ ...web, replaces: '1.0.0', back: '1.0.0', seconds: 2 }, db] as const;
  assert.equal(renderNodeResult({ ...RESULT, addons }, NO_PAINT, { request: { root: '/tmp/trial' } }).split('\n'), [
    'web  1.0.0 → 1.1.0  installed, 2.0 s',
    'db   1.0.0 → 1.1.0  installed (requested by an operator), 1.0 s',
    '0 images loaded; run 20261121T101500Z-3f2a, 80.0 s',
    'curlew rollback --root /tmp/trial web restores 1.0.0',
  ]);
});

test('on a terminal each line has a mark, with a color unless that is switched off', () => {
  const stream = { isTTY: true };
  const marks = (env: Readonly<Record<string, string>>): readonly string[] =>
    renderNodeResult(RESULT, paintFor(stream, env), GIVEN)
      .split('\n')
      .slice(0, 3)
      .map((line) => line.replace(/(?:web|db|old) .*/, ''));
  assert.equal(marks({ TERM: 'xterm', NO_COLOR: '1' }), ['✓ ', '· ', '! ']);
  assert.equal(marks({ TERM: 'xterm' }), ['\u001b[32m✓ \u001b[39m', '· ', '\u001b[33m! \u001b[39m']);
  assert.equal(marks({ TERM: 'dumb' }), ['', '', '']);
});

test.run();
