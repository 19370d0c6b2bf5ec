import { editDistance, nearest } from '../../src/core/nearest.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/nearest');
const COMMANDS = ['new', 'lint', 'build', 'bundle', 'node', 'logs', 'status', 'uninstall'];

test('an added, missing or swapped letter of a short word is a typo', () => {
  const typos = { neww: 'new', lnt: 'lint', lnit: 'lint', log: 'logs', NODE: 'node', ndoe: 'node' };
  for (const [word, meant] of Object.entries(typos)) {
    assert.equal([nearest(word, COMMANDS), nearest(word, COMMANDS, { isAnyWord: true })], [meant, meant], word);
  }
});

test('a short name with another letter is a typo, a short word that people guess is another word', () => {
  const others = { nope: 'node', LINK: 'lint', list: 'lint', net: 'new' };
  for (const [word, close] of Object.entries(others)) {
    assert.equal([nearest(word, COMMANDS), nearest(word, COMMANDS, { isAnyWord: true })], [close, undefined], word);
  }
});

test('a third of the letters of a longer word may differ', () => {
  const typos = { biuld: 'build', buind: 'build', stetus: 'status', unistal: 'uninstall' };
  for (const [word, meant] of Object.entries(typos)) assert.is(nearest(word, COMMANDS), meant, word);
  for (const word of ['store', 'kubelet', 'x'.repeat(300)]) assert.is(nearest(word, COMMANDS), undefined, word);
});

test('of several, the closest is meant', () => {
  assert.is(nearest('bundel', ['build', 'bundles', 'bundle']), 'bundle');
});

test('a replaced letter counts as the caller says', () => {
  assert.equal([editDistance('nope', 'node'), editDistance('nope', 'node', 2), editDistance('a', '')], [1, 2, 1]);
});

test.run();
