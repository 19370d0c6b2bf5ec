import * as v from 'valibot';
import { byKey, closed } from '../../../src/core/schema.ts';
import { readJsonFile } from '../../../src/formats/yaml/document.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('formats/yaml/document');

const schema = closed({
  rules: v.optional(byKey(v.picklist(['off', 'error'], 'not a severity\none of off, error')), {}),
  files: v.optional(v.array(v.string()), []),
});

function read(text: string) {
  const found: unknown[] = [];
  const { value, placeOf } = readJsonFile(
    schema,
    { file: 'a.json', text },
    ({ line, column, length }, message, hint) => {
      found.push([`${line}:${column} ${length}`, message, ...(hint === undefined ? [] : [hint])]);
    },
  );
  return { value, found, placeOf };
}

test('a file that fits is its value with defaults, and has places', () => {
  const { value, found, placeOf } = read('{\n\t"rules": {"a/b": "off"}\n}\n');
  assert.equal([value, found], [{ rules: { 'a/b': 'off' }, files: [] }, []]);
  assert.equal(placeOf(['rules', 'a/b']), { file: 'a.json', line: 2, column: 12, length: 5 });
});

test('every problem of a file is reported where it is, unknown keys with the key that is meant', () => {
  const { value, found } = read(
    '{\n  "rule": {},\n  "other": 1,\n  "rules": {"a": "on", "b": 1},\n  "files": ["x", 2]\n}\n',
  );
  assert.is(value, undefined);
  assert.equal(found, [
    ['4:13 3', 'rules.a: not a severity', 'one of off, error'],
    ['4:24 3', 'rules.b: not a severity', 'one of off, error'],
    ['5:18 1', 'files[1]: not a string'],
    ['2:3 6', 'rule: unknown key', 'did you mean "rules"?'],
    ['3:3 7', 'other: unknown key', 'known: rules, files'],
  ]);
});

for (const [title, text, message] of [
  ['a list', '[]', 'not an object'],
  ['a text', '"x"', 'not an object'],
  ['no JSON', '{', 'not JSON: '],
  ['many levels', '['.repeat(600), 'not JSON: it nests more than 500 lists and objects'],
] as const) {
  test(`${title} is one problem at the beginning`, () => {
    const { value, found } = read(text);
    const [[place, what] = []] = found as readonly (readonly string[])[];
    assert.equal([value, found.length, place, what?.startsWith(message)], [undefined, 1, '1:1 1', true]);
  });
}

test.run();
