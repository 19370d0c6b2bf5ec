import { firstOf } from '../../src/core/counted.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/counted');

test('a long list is its first names and how many are left out, a short one all of them', () => {
  assert.equal(
    [[], ['a'], ['a', 'b'], ['a', 'b', 'c', 'd']].map((names) => firstOf(names, 2)),
    ['', 'a', 'a, b', 'a, b and 2 more'],
  );
});

test.run();
