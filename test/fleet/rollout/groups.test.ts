import { compareNames, groupsOf, selects, type Selector } from '../../../src/fleet/rollout/groups.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/groups');

const expression = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', ...values: readonly string[]): Selector => {
  return { matchExpressions: [{ key: 'ring', operator, values }] };
};

test('selectors have the operators of Kubernetes', () => {
  const matched = [{ ring: 'canary' }, { ring: 'late' }, {}].map((labels) =>
    [
      expression('In', 'canary'),
      expression('NotIn', 'canary'),
      expression('Exists'),
      expression('DoesNotExist'),
      {},
      { matchLabels: { ring: 'late' } },
    ].map((selector) => Number(selects(selector, labels))),
  );
  assert.equal(matched, [
    [1, 0, 1, 0, 1, 0],
    [0, 1, 1, 0, 1, 1],
    [0, 1, 0, 1, 1, 0],
  ]);
});

test('a key that every JavaScript object has is no label', () => {
  assert.not(selects({ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, {}));
});

test('natively names are in the order that people count in', () => {
  const names = ['c10', 'c2', 'c1', 'c02'];
  assert.equal(
    names.toSorted((a, b) => compareNames(a, b, 'native')),
    ['c1', 'c02', 'c2', 'c10'],
  );
  assert.equal(
    names.toSorted((a, b) => compareNames(a, b, 'ocm')),
    ['c02', 'c1', 'c10', 'c2'],
  );
});

test('a member belongs to the first group that selects it, and a group has its own size', () => {
  const members = ['a', 'b', 'c', 'd'].map((name) => ({ name, labels: { ring: name < 'd' ? 'early' : 'late' } }));
  const early = { selector: { matchLabels: { ring: 'early' } } };
  const groups = groupsOf(members, {
    rules: [
      { name: 'first', size: 2, ...early },
      { name: 'second', ...early },
    ],
    size: undefined,
  });
  assert.equal(
    groups.map((group) => [group.name, group.index, group.members.map(({ name }) => name)]),
    [
      ['first', 0, ['a', 'b']],
      ['first', 1, ['c']],
      ['', 2, ['d']],
    ],
  );
});

test.run();
