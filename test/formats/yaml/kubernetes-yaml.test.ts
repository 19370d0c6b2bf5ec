import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exactJson } from '../../../src/core/json.ts';
import { readYaml, type YamlText } from '../../../src/formats/yaml/yaml.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('formats/yaml/kubernetes-yaml');

function readKubernetesYaml(text: string): YamlText {
  return readYaml('manifest.yaml', text, { kubernetes: () => true });
}

/** JSON with all digits; undefined: refused. */
function json(text: string): string | undefined {
  const { value, diagnostics } = readKubernetesYaml(text);
  return diagnostics.some(({ severity }) => severity === 'error') ? undefined : exactJson(value);
}

function problems(text: string): readonly string[] {
  return readKubernetesYaml(text).diagnostics.map(({ message, place }) => `${place.line}:${place.column} ${message}`);
}

test('each scalar is what go-yaml makes of it', async () => {
  const file = join(import.meta.dirname, '../../fixtures/yaml/go-scalars.json');
  const table = JSON.parse(await readFile(file, 'utf8')) as Readonly<Record<string, string | null>>;
  const wrong = Object.entries(table).flatMap(([scalar, wanted]) => {
    const found = json(`a: ${scalar}\n`);
    const value = wanted === null ? undefined : `{"a":${wanted}}`;
    return found === value ? [] : [`${scalar}: ${found}, and go-yaml says ${value}`];
  });
  assert.equal(wrong, []);
  assert.is(Object.keys(table).length > 350, true);
});

test('nulls are values, and integers keep all digits', () => {
  assert.is(json('args: [a, ~, b]\ncpu: null\nempty:\n'), '{"args":["a",null,"b"],"cpu":null,"empty":null}');
  assert.is(json('ingress:\n- \n'), '{"ingress":[null]}');
  assert.is(json('[9007199254740993, 18446744073709551615]'), '[9007199254740993,18446744073709551615]');
});

test('keys become texts as in Go, and no two may become the same one', () => {
  assert.is(json('yes: 1\n0x10: 2\n1.5: 3\n'), '{"16":2,"true":1,"1.5":3}');
  assert.equal(problems('yes: 1\ntrue: 2\n'), ['2:1 "true" is listed twice']);
  assert.equal(problems('a: 1\nb: {c: 1, c: 2}\n'), ['2:11 "c" is listed twice']);
  assert.equal(problems('~: 1\n'), ['1:1 a key must be a plain word']);
  assert.equal(problems('1.00000001: 1\n'), ['1:1 a key must be a plain word']);
});

test('a merge overrides the keys before it, and keys after it override the merge', () => {
  const base = 'p: &x {yes: 0400, b: 2}\n';
  const merged = (text: string): string | undefined => json(`${base}q: ${text}\n`)?.replace(/^.*"q":/, '');
  assert.is(merged('{b: 3, <<: *x, c: 4}'), '{"b":2,"true":256,"c":4}}');
  assert.is(merged('{<<: *x, b: 3}'), '{"true":256,"b":3}}');
  assert.is(merged('{<<: [{b: 5}, *x]}'), '{"b":5,"true":256}}');
  assert.is(merged('&y {<<: *x, c: ~}\nr: {b: 9, <<: *y}')?.replace(/^.*"r":/, ''), '{"b":2,"true":256,"c":null}}');
});

test('a block that ends with the file has no line break that the file does not have', () => {
  const texts = ['a: |\n  x', 'a: >\n  x\n  y', 'a: |+\n  x', 'a: |\n  x\n', 'a: |\n  x\n# y', 'a: |\n  x\nb: y'];
  const read = (kubernetes: boolean): readonly unknown[] =>
    texts.map((text) => readYaml('a.yaml', text, kubernetes ? { kubernetes: () => true } : {}).value);
  assert.equal(
    read(true).map((value) => (value as { a: string }).a),
    ['x', 'x y', 'x', 'x\n', 'x\n', 'x\n'],
  );
  assert.equal(
    read(false).map((value) => (value as { a: string }).a),
    ['x\n', 'x y\n', 'x\n', 'x\n', 'x\n', 'x\n'],
  );
});

test('what cannot be merged is a finding, in every reader', () => {
  for (const text of ['<<: 5', 'a: &a 1\nb: {<<: *a}', '<<: [1]']) {
    for (const read of [readKubernetesYaml, (given: string): YamlText => readYaml('f', given)]) {
      assert.equal(
        read(text).diagnostics.map(({ code }) => code),
        ['yaml/merge'],
      );
    }
  }
});

test('a text that is not of its tag is refused at its place', () => {
  assert.equal(problems('a: 1\nb: !!int yes\n'), ['2:10 this is not a value of the type tag:yaml.org,2002:int']);
});

test('aliases and merges that expand to too much are refused', () => {
  const grow = (item: (inner: string) => string): string =>
    Array.from({ length: 9 }, (_, at) => `a${at + 1}: &a${at + 1} ${item(Array(9).fill(`*a${at}`).join(', '))}\n`).join(
      '',
    );
  assert.match(problems(`a0: &a0 [1]\n${grow((inner) => `[${inner}]`)}`).join(' '), 'aliases cannot be expanded');
  assert.match(problems(`a0: &a0 {b: 1}\n${grow((inner) => `{<<: [${inner}]}`)}`).join(' '), 'cannot be expanded');
});

test('other readers keep YAML 1.2: no octal numbers without o, no yes and no, and no nulls', () => {
  const { value } = readYaml('spec.yaml', 'mode: 0777\nflag: yes\nlist: [a, ~]\nnone: ~\n');
  assert.equal(value, { mode: 777, flag: 'yes', list: ['a'] });
});

test.run();
