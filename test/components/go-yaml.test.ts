/** YAML of Kubernetes compared with go-yaml itself: the recorded table of scalars, random scalars, and documents. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { readYaml } from '../../src/formats/yaml/yaml.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { cases } from '../support/sweep.ts';
import { oracle, ROOT, run } from './support/programs.ts';
import { sortedJson } from './support/sorted-json.ts';

const test = suite('components/go-yaml', { timeoutMs: 120_000 });
const when = unless(missing(oracle('go-yaml')), test);

/** JSON of each document; undefined: refused. Numbers have all digits, and keys are sorted. */
async function byGo(documents: readonly string[]): Promise<readonly (string | undefined)[]> {
  const output = await run(oracle('go-yaml'), [], {
    input: `${documents.map((one) => JSON.stringify(one)).join('\n')}\n`,
  });
  return output.split('\n').map((line) => /^\{"json":(.*)\}$/s.exec(line)?.[1]);
}

function byCurlew(document: string): string | undefined {
  const { value, diagnostics } = readYaml('manifest.yaml', document, { kubernetes: () => true });
  return diagnostics.some(({ severity }) => severity === 'error') ? undefined : sortedJson(value);
}

async function differences(documents: readonly string[]): Promise<readonly string[]> {
  const wanted = await byGo(documents);
  assert.is(wanted.length, documents.length);
  return documents.flatMap((document, at) => {
    const found = byCurlew(document);
    return found === wanted[at] ? [] : [`${JSON.stringify(document)}: ${found}, and go-yaml says ${wanted[at]}`];
  });
}

when('the recorded table of scalars is what go-yaml says', async () => {
  const file = join(ROOT, 'test/fixtures/yaml/go-scalars.json');
  const table = Object.entries(JSON.parse(await readFile(file, 'utf8')) as Readonly<Record<string, string | null>>);
  const found = await byGo(table.map(([scalar]) => `a: ${scalar}\n`));
  assert.equal(
    found.map((one) => one?.replace(/^\{"a":(.*)\}$/s, '$1') ?? null),
    table.map(([, json]) => json),
  );
});

/** Most are nearly numbers. */
function scalars(): fc.Arbitrary<string> {
  const from = (characters: string, maxLength: number): fc.Arbitrary<string> =>
    fc.array(fc.constantFrom(...Array.from(characters)), { minLength: 1, maxLength }).map((parts) => parts.join(''));
  const joined = (...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
    fc.tuple(...parts).map((texts) => texts.join(''));
  const sign = fc.constantFrom('', '-', '+');
  return fc.oneof(
    from('0123456789_', 24),
    from('0123456789abefxXoOB+-._:~yYnNtTrRuUsSlLiIfF', 6),
    joined(sign, fc.constantFrom('', '0', '0x', '0X', '0b', '0B', '0o', '0O', '.', '0b-', '_'), from('01234567_', 66)),
    joined(sign, from('0123456789', 20), fc.constantFrom('', '.', '.5', 'e3', 'E-3', 'e', 'e999', 'e-999', '.e1', '_')),
    joined(sign, fc.constant('0x'), from('0123456789abcdefABCDEF', 18)),
    fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  );
}

when('random scalars are read as go-yaml reads them', async () => {
  const isScalar = (text: string): boolean => !/^-$|^:|:$/.test(text);
  const documents = fc.sample(scalars().filter(isScalar), cases(20_000)).map((text) => `a: ${text}\n`);
  assert.equal(await differences(documents), []);
});

/** Values that survive in any style of writing. */
function documents(): fc.Arbitrary<string> {
  const leaf = fc.constantFrom(
    '~',
    '',
    'yes',
    '0400',
    '"0400"',
    "'~'",
    '9007199254740993',
    '1.50',
    'a b',
    '"\\u00e9 #"',
    '2001-01-01',
  );
  const key = fc.constantFrom('a', 'b', 'on', '0x10', '"c d"', '1.5', "'~'");
  const { block } = fc.letrec<{ readonly flow: string; readonly block: string }>((tie) => ({
    flow: fc.oneof(
      { maxDepth: 3 },
      leaf.filter((text) => text !== ''),
      fc.array(tie('flow'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
      fc
        .uniqueArray(fc.tuple(key, tie('flow')), { maxLength: 3, selector: ([name]) => name })
        .map((pairs) => `{${pairs.map(([name, value]) => `${name}: ${value}`).join(', ')}}`),
    ),
    block: fc.oneof(
      { maxDepth: 4 },
      leaf.map((text) => ` ${text}\n`),
      tie('flow').map((text) => ` ${text} # comment\n`),
      fc.constantFrom(' |\n  text\n\n   more\n', ' >-\n  text\n  more\n\n', ' "two\n  lines"\n', ' |+\n  0400\n\n'),
      fc
        .array(tie('block'), { minLength: 1, maxLength: 3 })
        .map((items) => `\n${items.map((item) => `-${indented(item)}`).join('')}`),
      fc
        .uniqueArray(fc.tuple(key, tie('block')), { minLength: 1, maxLength: 4, selector: ([name]) => name })
        .map((pairs) => `\n${pairs.map(([name, value]) => `${name}:${indented(value)}`).join('')}`),
    ),
  }));
  return block.map((value) => `root:${indented(value)}`);
}

function indented(text: string): string {
  return text.replaceAll(/\n(?=[^\n])/g, '\n  ');
}

when('a block at the end of a file without a line break is read as go-yaml reads it', async () => {
  const ends = ['', '\n', '\r', '\n\n', '\n# c', '\n  ', '\n\n  '];
  const blocks = ['|', '>', '|+', '>+', '|-', '|2', '&b |'].map((head) => `a: ${head}\n  x\n\n   y\n  z`);
  assert.equal(await differences([...blocks.flatMap((one) => ends.map((end) => one + end)), 'a: |', 'a: |\n- b']), []);
});

when('random documents are read as go-yaml reads them', async () => {
  assert.equal(await differences(fc.sample(documents(), cases(3000))), []);
});

when('merges, anchors and keys of all types are read as go-yaml reads them', async () => {
  const found = await differences([
    'a: &a {yes: 1, b: 2}\nc: {b: 3, <<: *a}\n',
    'a: &a {yes: 1, b: 2}\nc: {<<: *a, d: ~}\n',
    'a: &a {b: 1}\nb: &b {b: 2, c: 3}\nc: {<<: [*a, *b], d: 3}\n',
    'a: &a {b: 1}\nb: &b {<<: *a, c: 2}\nc: {c: 9, <<: *b}\n',
    'a: &a 0400\nb: [*a, *a]\n',
    'a: &a [~]\nb: *a\n',
    'a: *a\n',
    'a: &a [*a]\n',
    '<<: 1\n',
    '"<<": {a: 1}\n',
    '? a\n: b\n? c\n',
    '~: a\n',
    '[a]: b\n',
    '\ufeffa: yes\r\nb: 010\r\n',
    '%YAML 1.1\n---\na: yes\n',
    'a: !!set {b, c}\nd: !!omap [e: 1]\n',
    '__proto__: {a: 1}\nb: {__proto__: 2}\n',
    'a:\tb\n',
    'a: {\n\t"b": [\n\t\t1\n\t]}\n',
    'a:\n\tb: 1\n',
  ]);
  assert.equal(found, []);
});

test.run();
