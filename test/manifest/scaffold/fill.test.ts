import { fillText, fillEach } from '../../../src/manifest/scaffold/fill.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/fill');

const NONE = { words: {}, conditions: new Set<string>(), lists: {} };

test('longer words go before shorter ones, and nothing is filled in twice', () => {
  const words = { sample: 'sample-x', 'sample-name': 'sample' };
  assert.is(fillText('sample-name sample\n', { ...NONE, words }), 'sample sample-x\n');
});

test('blocks stay where their word conditions, also inside of each other', () => {
  const text = 'a\n  # [if one]\nb\n# [if two]\nc\n# [end]\n# [end]\nd\n';
  assert.is(fillText(text, NONE), 'a\nd\n');
  assert.is(fillText(text, { ...NONE, conditions: new Set(['one']) }), 'a\nb\nd\n');
  assert.is(fillText(text, { ...NONE, conditions: new Set(['one', 'two']) }), 'a\nb\nc\nd\n');
});

test('blocks come once for each of a list', () => {
  const text = '# [each thing]\nthing=THING\n# [end]\n';
  const list = [{ THING: '1' }, { THING: '2' }];
  assert.is(fillText(text, { ...NONE, lists: { thing: list } }), 'thing=1\nthing=2\n');
  assert.is(fillText(text, NONE), '');
  assert.equal(fillEach('THING', list, NONE), ['1', '2']);
});

test('an ordinary comment is no mark', () => {
  assert.is(fillText('# [if] a\n# if one\n', NONE), '# [if] a\n# if one\n');
});

test.run();
