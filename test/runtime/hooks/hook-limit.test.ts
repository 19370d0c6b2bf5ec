import { hookLimit, parseLimit } from '../../../src/runtime/hooks/hook-limit.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('limits of hooks');

test('a limit is written in seconds, minutes or hours', () => {
  assert.equal(
    ['90', '90s', '30m', '2h', '0'].map((text) => parseLimit(text, 'x')),
    [90, 90, 1800, 7200, undefined],
  );
});

test('what is no time, or longer than a timer can be, is refused', () => {
  for (const text of ['', '-1', '1.5s', '1d', 'soon', '9999999h', '1e3']) {
    assert.throwsWith(() => parseLimit(text, '--hook-timeout'), 'USAGE', /^--hook-timeout: /);
  }
});

test('the setting goes before the general limit, and that before the default of the add-on', () => {
  const settings = { properties: { hookTimeout: { default: '3m' } } };
  const addon = { name: 'demo', settings };
  assert.is(hookLimit(addon, { hookTimeout: 60 }, 5), 60);
  assert.is(hookLimit(addon, { hookTimeout: 0 }, 5), undefined);
  assert.is(hookLimit(addon, {}, 5), 5);
  assert.is(hookLimit(addon, {}, undefined), 180);
  assert.is(hookLimit({ name: 'demo', settings: undefined }, {}, undefined), undefined);
  assert.throwsWith(() => hookLimit(addon, { hookTimeout: {} }, 5), 'USAGE', /^demo: hookTimeout: /);
});

test.run();
