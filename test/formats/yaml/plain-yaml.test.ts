import * as fc from 'fast-check';
import { isMap, isScalar, isSeq, parseAllDocuments, parseDocument, visit } from 'yaml';
import { readPlain } from '../../../src/formats/yaml/plain-yaml.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('manifest/lint/plain-yaml');

const isPlainYaml = (text: string): boolean => readPlain(text, { build: false }) !== undefined;
const plainTree = (text: string) => readPlain(text, { build: true })?.root;

for (const [title, text] of [
  ['maps and lists', 'a: 1\nb:\n  c: "x: y"\n  d:\n    - e: f\n      g: h\n    - i\n'],
  ['a list right below its key', 'a:\n- b: c\n  d: e\n- f\ng: h\n'],
  ['lists in lists', '- - a\n  - b\n-\n  - c\n'],
  ['keys without a value', 'a:\nb: # nothing\n  c:\nd:\n'],
  ['maps on one line', 'a: {b: c, "d": [e, "f"], g: "h, i"} # j\nk:\n  - {l: m}\n'],
  ['text in quotes over several lines', "a: 'b: # c\n\n  d''\n  e' # f\ng:\n  - \"h\n    - i\"\n"],
  ['text in blocks', 'a: |\n  {{ x\n\n    y: [\n  z\nb:\n  - >-\n    "w\n  - v\n'],
  ['comments', '--- # c\n# c\na: b\n   # c\nc: "d" # e\n'],
  ['flow that is empty or flat', 'a: {}\nb: []\nc: ["x", y, 1.2]\n'],
  ['a value on a line of its own', 'a:\n  {}\nb:\n  - c:\n      d e\n  -\n    "f"\n'],
  ['comments behind values', "a: b # c\nd: ['e' , f] # g\nh: 1 # 1024 ^ 3\n"],
  ['quotes in quotes', "a: 'it''s'\nb: :c\n"],
  ['tabs in text', 'a: |\n  b\tc\n'],
  ['arguments', 'a:\n  - --b=c\n  - -d\n  - $(E)\n  - f:g\n'],
] as const) {
  test(`plain: ${title}`, () => {
    assert.ok(isPlainYaml(text));
  });
}

for (const [title, text] of [
  ['a key twice', 'a: 1\na: 2\n'],
  ['a key twice, once in quotes', 'a: 1\n"a": 2\n'],
  ['a key twice in a map on one line', 'a: {b: c, d: e, b: f}\n'],
  ['text in quotes that is not deep enough', "a:\n  b: 'c\n  d'\n"],
  ['text in quotes that does not end', "a: 'b\n  c''\n"],
  ['something behind text in quotes', 'a: "b\n  c" d\n'],
  ['something deeper below a value', 'a: 1\n  b: 2\n'],
  ['something between two levels', 'a:\n    b: 1\n  c: 2\n'],
  ['a list in a map', 'a: 1\n- b\n'],
  ['a map in a list', '- a\nb: 1\n'],
  ['text that is not deep enough', 'a: |\n    b\n  c\n'],
  ['blanks before text', 'a: |\n      \n  b\n'],
  ['an anchor', 'a: &b 1\n'],
  ['a tab', 'a:\n\tb: 1\n'],
  ['a value over two lines', 'a: b\n  c\n'],
  ['two documents', 'a: 1\n---\nb: 2\n'],
  ['a value below a value', 'a:\n  b\n  c\n'],
  ['a value that is not deeper than its key', 'a:\n  b:\n  c\n'],
  ['a map behind a comment', 'a: b # c\n  d: e\n'],
  ['a word alone', 'a\n'],
  ['more than two hundred levels', '- '.repeat(201)],
] as const) {
  test(`not plain: ${title}`, () => {
    assert.not(isPlainYaml(text));
  });
}

/** What the parser says: no mistake, no key twice. */
function isWellFormed(text: string): boolean {
  const parsed = parseAllDocuments(text, { uniqueKeys: false, strict: false, logLevel: 'silent' });
  return [...parsed].every((tree) => {
    let sound = tree.errors.length === 0;
    visit(tree, {
      Map(_, map) {
        const keys = map.items.map(({ key }) => (isScalar(key) ? key.value : key));
        if (!isMap(map) || new Set(keys).size < keys.length) sound = false;
      },
    });
    return sound;
  });
}

const RESTS =
  'a:¶b:¶c:¶a: 1¶b: "x"¶c: |¶d: >-¶"e": f¶a: {}¶b: []¶c: [x, "y"]¶x¶"x"¶- ¶-1¶--x¶x:y¶x: y: z¶# c¶|¶>¶{}¶[a]¶---¶a: # c¶' +
  "a: 'it''s'¶b: \"x\" # c¶a: b #c¶a: b # c¶a:b¶'a': b¶\"a\" b¶¶x y¶...¶a: -¶a: - b¶a: ~¶" +
  "a: {b: c, 'd': [x, y]}¶a: {b: c, b: d}¶{b: \"c, d\"}¶a: 'x # y¶b: \"x¶y'¶y\" # c¶z''¶'x¶'¶\"";

test('what is called plain is well-formed for the parser', () => {
  const indent = fc.constantFrom('', '', '  ', '  ', '    ', '    ', '      ', ' ', '   ');
  const dashes = fc.constantFrom('', '', '', '- ', '- - ', '-   ', '-');
  const rest = fc.constantFrom(...RESTS.split('¶'));
  const line = fc.tuple(indent, dashes, rest).map((parts) => parts.join(''));
  const texts = fc.array(line, { minLength: 1, maxLength: 9 }).map((lines) => `${lines.join('\n')}\n`);
  fc.assert(
    fc.property(texts, (text) => !isPlainYaml(text) || isWellFormed(text)),
    cases(5000),
  );
});

/** Maps, lists and texts with their places; everything else is null. */
function shapeOf(node: unknown): unknown {
  if (isMap(node)) return node.items.map(({ key, value }) => [isScalar(key) && String(key.value), shapeOf(value)]);
  if (isSeq(node)) return node.items.map(shapeOf).filter((item) => item !== null);
  const isText =
    isScalar(node) && typeof node.value === 'string' && !node.type?.startsWith('BLOCK') && node.value !== '';
  return isText && node.range ? [node.value, node.range[0], node.range[1]] : null;
}

/** Lists on one line and empty maps are values, of which no nodes are made. */
function withoutFlow(text: string): string {
  return text.replaceAll(/\{\}|\[\]|\[x, "y"\]|\[a\]/g, '~');
}

test('the tree of a plain document is that of the parser', () => {
  const indent = fc.constantFrom('', '', '  ', '  ', '    ', '      ');
  const dashes = fc.constantFrom('', '', '', '- ', '- - ');
  const rest = fc.constantFrom(
    ...RESTS.split('¶'),
    'k: v',
    'l: m',
    'n: 1.20',
    'o: true',
    "p: 'q'",
    'r: 0x1',
    's: .inf',
  );
  const line = fc.tuple(indent, dashes, rest).map((parts) => parts.join(''));
  const texts = fc.array(line, { minLength: 1, maxLength: 9 }).map((lines) => withoutFlow(`${lines.join('\n')}\n`));
  fc.assert(
    fc.property(texts, (text) => {
      const tree = plainTree(text);
      if (tree === undefined) return;
      assert.equal(shapeOf(tree), shapeOf(parseDocument(text, { uniqueKeys: false }).contents), text);
    }),
    cases(5000),
  );
});

for (const [title, text] of [
  ['a text of one line in a block', 'a: >-\n  b\n'],
  ['a map on one line', 'a: {image: "b:c"}\n'],
  ['text in quotes over several lines', "a: 'b\n  c'\n"],
  ['what is not plain', 'a: &b 1\n'],
] as const) {
  test(`no tree of ${title}`, () => {
    assert.is(plainTree(text), undefined);
  });
}

test.run();
