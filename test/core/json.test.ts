import { DEEPEST, exactJson, exactValue, parseJson, printableJson, shallowJson } from '../../src/core/json.ts';
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

test('integers beyond 2^53 keep their digits, in values and not in strings', () => {
  const text =
    '{"a":[9007199254740993,-9007199254740993],"b":{"c":9007199254740991,"__proto__":18446744073709551615},' +
    '"d":"integer 9007199254740993","e":"{\\"f\\":9007199254740993}"}';
  assert.is(exactJson(exactValue(text)), text);
  assert.equal(exactValue('[ 9007199254740993, 1.00000000000000000001, 1e30, 1234567890123456e2 ]'), [
    9007199254740993n,
    1,
    1e30,
    123456789012345600,
  ]);
});

function isRefused(document: Uint8Array | string): boolean {
  try {
    parseJson(document);
    return false;
  } catch (error) {
    return error instanceof SyntaxError || error instanceof TypeError;
  }
}

test('a document is read as any reader would, or refused', () => {
  const fine = '{"a":{"a":1,"b":"a\\"b\\\\"},"b":[{"a":":"},{"a":null}],"__proto__":{"c":{}}}';
  assert.equal(JSON.stringify(parseJson(fine)), fine);
  assert.equal(JSON.stringify(parseJson(Buffer.from(fine))), fine);
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"b":{"a":1,"c":2,"a":3}}]',
    '{"__proto__":1,"__proto__":2}',
    '\ufeff{}',
    '{"a":1',
    '',
  ]) {
    assert.ok(isRefused(text), text);
    assert.ok(isRefused(Buffer.from(text)), text);
  }
  assert.ok(isRefused(Buffer.from('"\u00e4"', 'latin1')));
});

test('a document may nest deeply', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.ok(Array.isArray(parseJson(deep)));
});

test('what may be written again may not', () => {
  const [deep, shallow] = [501, 500].map((depth) => '['.repeat(depth) + ']'.repeat(depth));
  const refused = (read: () => unknown): boolean => {
    try {
      read();
      return false;
    } catch (error) {
      return error instanceof SyntaxError && error.message === 'it nests more than 500 lists and objects';
    }
  };
  assert.ok(refused(() => shallowJson(deep ?? '')));
  assert.ok(refused(() => parseJson(deep ?? '', DEEPEST)));
  shallowJson(shallow ?? '');
  parseJson(`"${deep}"`, DEEPEST);
});

test('a document of more values than any that is meant is refused before they fill the memory', () => {
  for (const [unit, read] of [
    ['{},', parseJson],
    ['0,', shallowJson],
  ] as const) {
    const document = `[${unit.repeat(16_000_000)}0]`;
    let refused: unknown;
    try {
      read(document);
    } catch (error) {
      refused = error;
    }
    assert.ok(refused instanceof SyntaxError && refused.message === 'it has more than 16000000 values', unit);
  }
  assert.is((shallowJson(`[${'0,'.repeat(1_000_000)}0]`) as readonly number[]).length, 1_000_001);
});

test.run();
