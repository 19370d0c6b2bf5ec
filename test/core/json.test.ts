import { printableJson } from '../../src/core/json.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/json');

test('nothing in printed JSON drives a terminal, and it says the same', () => {
  const value = { 'a\u009b2J': ['\u001b[31m', '\u007f', '\u0085', '\u202e', '\u2066x', 'plain ä 漢', 'line\nline'] };
  for (const indent of [undefined, 2]) {
    const text = printableJson(value, indent);
    assert.not.match(text, /[^\n -~\u00a0-\u2027\u202f-\u2065\u206a-\uffff]/);
    assert.match(text, '\\u009b2J');
    assert.equal(JSON.parse(text), value);
  }
});

test.run();
