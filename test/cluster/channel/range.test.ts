import * as fc from 'fast-check';
import { satisfies } from 'semver';
import {
  complement,
  contains,
  formatRange,
  gapsIn,
  intersection,
  parseRange,
  parseTriple,
  parseVersion,
  union,
  type Triple,
} from '../../../src/cluster/channel/range.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('cluster/channel/range');

const shown = (text: string, rules: 'kops' | 'native' = 'kops'): string => {
  const { range } = parseRange(text, rules);
  return range === undefined ? 'unreadable' : formatRange(range);
};

for (const [text, kops, native] of [
  ['', 'every version', 'every version'],
  ['>=1.28.0 <1.32.0', '>=1.28.0 <1.32.0', '>=1.28.0 <1.32.0'],
  ['<1.4.0 || >=1.6.0', '<1.4.0 || >=1.6.0', '<1.4.0 || >=1.6.0'],
  ['==1.2.3', '1.2.3', '1.2.3'],
  ['!1.2.3', '<1.2.3 || >=1.2.4', '<1.2.3 || >=1.2.4'],
  ['>=  1.2.3', '>=1.2.3', '>=1.2.3'],
  ['1.2.x', '>=1.2.0 <1.3.0', '>=1.2.0 <1.3.0'],
  ['>1.x', '>=2.0.0', '>=2.0.0'],
  ['<=1.2.x', '<1.3.0', '<1.3.0'],
  ['!=1.2.x', 'no version', '<1.2.0 || >=1.3.0'],
  ['1.x.x', '>=1.0.0 <1.1.0', '>=1.0.0 <2.0.0'],
  ['~1.2.x', '1.2.0', 'unreadable'],
  ['^1.x', '1.0.0', 'unreadable'],
  ['1.2.0 - 1.4.0', 'no version', 'unreadable'],
  ['>=1.2.0 , <1.4.0', '>=1.2.0 <1.4.0', 'unreadable'],
  ['! 1.2.0', '1.2.0', 'unreadable'],
  ['^1.6.0', 'unreadable', 'unreadable'],
  ['>=1.6', 'unreadable', 'unreadable'],
  ['>=v1.6.0', 'unreadable', 'unreadable'],
  ['>=1.2.0 || || <1.0.0', 'unreadable', 'unreadable'],
  ['|| 1.2.0', 'unreadable', 'unreadable'],
  ['1.2.0 ||', 'unreadable', 'unreadable'],
  [' ', 'unreadable', 'unreadable'],
  ['>=1.30.0-rc.1', '>=1.30.0', '>=1.30.0'],
  ['<=1.30.0-rc.1', '<1.30.0', '<1.30.0'],
  ['1.30.0-rc.1', 'no version', 'no version'],
] as const) {
  test(`"${text}" is ${kops} to kops, and ${native} natively`, () => {
    assert.equal([shown(text, 'kops'), shown(text, 'native')], [kops, native]);
  });
}

test('a range of absurd length is refused before it is read', () => {
  const text = Array.from({ length: 100_000 }, () => '>=1.0.0').join(' ');
  assert.is(parseRange(text, 'kops').problem, 'it is longer than 512 characters');
});

test("a server's version counts without pre-release and build", () => {
  assert.equal(['v1.29.4-gke.100', '1.30', 'v01.030.0+k3s1', 'latest'].map(parseTriple), [
    [1, 29, 4],
    [1, 30, 0],
    [1, 30, 0],
    undefined,
  ]);
  assert.is(parseVersion('1.2-rc.1'), undefined);
});

test('gaps are the versions between intervals, not those outside', () => {
  const { range = [] } = parseRange('<1.28.0 || >=1.30.0 <1.31.0 || >=1.31.1', 'native');
  assert.is(formatRange(gapsIn(range)), '>=1.28.0 <1.30.0 || 1.31.0');
  assert.equal(gapsIn([]), []);
  assert.equal(gapsIn(parseRange('1.30.x', 'native').range ?? []), []);
});

const number = fc.integer({ min: 0, max: 4 });
const triple = fc.tuple(number, number, number);
const comparison = fc
  .tuple(fc.constantFrom('<', '<=', '>', '>=', '=', ''), triple)
  .map(([sign, numbers]) => `${sign}${numbers.join('.')}`);
const wildcard = fc
  .tuple(fc.constantFrom('<', '<=', '>', '>=', '=', ''), number, number)
  .map(([sign, major, minor]) => `${sign}${major}.${minor}.x`);
const terms = fc.array(fc.oneof(comparison, wildcard), { minLength: 1, maxLength: 3 });
const alternatives = fc.array(terms, { minLength: 1, maxLength: 3 });
const text = alternatives.map((all) => all.map((one) => one.join(' ')).join(' || '));

test('what npm reads as well contains the same versions', () => {
  fc.assert(
    fc.property(text, triple, (range, version) => {
      for (const rules of ['kops', 'native'] as const) {
        const { range: parsed = [] } = parseRange(range, rules);
        assert.is(contains(parsed, version), satisfies(version.join('.'), range), range);
      }
    }),
    cases(500),
  );
});

test('union, intersection and complement are those of sets, and what is shown is read as the same', () => {
  const contents = (range: string, version: Triple): boolean =>
    contains(parseRange(range, 'native').range ?? [], version);
  fc.assert(
    fc.property(text, text, triple, (left, right, version) => {
      const [a, b] = [contents(left, version), contents(right, version)];
      const [{ range: one = [] }, { range: other = [] }] = [parseRange(left, 'native'), parseRange(right, 'native')];
      assert.is(contains(union([...one, ...other]), version), a || b);
      assert.is(contains(intersection(one, other), version), a && b);
      assert.is(contains(complement(one), version), !a);
      if (one.length > 0 && shown(left) !== 'every version')
        assert.equal(parseRange(formatRange(one), 'native').range, one);
    }),
    cases(300),
  );
});

test.run();
