import { parseTimeout, sizeOf } from '../../../src/fleet/rollout/limits.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/limits');

test('natively a size is limited to the total, and upstream replaces it', () => {
  assert.is(sizeOf(10, 5, 0, 'native'), 5);
  assert.is(sizeOf(10, 5, 0, 'ocm'), 0);
  assert.is(sizeOf('150%', 5, 0, 'native'), 5);
  assert.is(sizeOf(0, 5, 5, 'native'), 0);
  assert.is(sizeOf(undefined, 5, 3, 'native'), 3);
});

test('what is neither a number nor a percentage is named', () => {
  assert.throwsWith(() => sizeOf('half', 5, 0, 'ocm'), 'SPEC_INVALID', /cannot read the size "half"/);
  assert.throwsWith(() => sizeOf(1.5, 5, 0, 'native'), 'SPEC_INVALID', /1\.5/);
  assert.throwsWith(() => parseTimeout('soon'), 'SPEC_INVALID', /cannot read the time "soon"/);
});

test('times are in seconds', () => {
  assert.equal(['90s', '10m', '2h', '0s'].map(parseTimeout), [90, 600, 7200, 0]);
});

test.run();
