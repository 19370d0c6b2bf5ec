import * as fc from 'fast-check';
import { findFunctions } from '../../../src/formats/bash/shell.ts';
import * as assert from '../../support/assert.ts';
import { corpusScript } from '../../support/corpus.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('manifest/shell');

function names(text: string): readonly string[] {
  return findFunctions('install.sh', text).map(({ name }) => name);
}

for (const [title, text, expected] of [
  ['name()', 'a() { :; }', ['a']],
  ['name () with dashes', 'cert-manager_pre_init () {\n:\n}', ['cert-manager_pre_init']],
  ['function name', 'function metrics-server {\n:\n}', ['metrics-server']],
  ['function name()', 'function a() { :; }', ['a']],
  ['the brace on the next line', 'a()\n{\n:\n}\nb()\n{\n:\n}', ['a', 'b']],
  ['several in a line', 'a() { :; }; b() { :; }', ['a', 'b']],
  ['a subshell as body', 'a() (\n:\n)\nb() { :; }', ['a', 'b']],
  ['behind then', 'if true; then a() { :; }; fi', ['a']],
  ['a comment', '# a() {\nb() { :; } # c() {', ['b']],
  ['quoted strings', 'echo "x\na() {" \'\nb() {\'\nc() { :; }', ['c']],
  ['a quote inside a substitution inside a quote', 'x="$(echo "a() {")"\nb() { :; }', ['b']],
  ['a here-document', 'cat <<EOF\na() {\nEOF\nb() { :; }', ['b']],
  ['a quoted here-document', "cat <<'E F'\na() {\nE F\nb() { :; }", ['b']],
  ['an indented here-document', 'cat <<-EOF\n\ta() {\n\tEOF\nb() { :; }', ['b']],
  ['two here-documents of one line', 'cat <<A <<B\na() {\nA\nb() {\nB\nc() { :; }', ['c']],
  ['a here-string', 'cat <<<EOF\na() { :; }', ['a']],
  ['a shift in arithmetic', 'x=$((1 << 2))\na() { :; }\n((y << 3))\nb() { :; }', ['a', 'b']],
  ['case patterns', 'case $x in\n a) echo ;;\n (b) echo ;;\nesac\nc() { :; }', ['c']],
  ['case in a substitution', 'x=$(case $y in a) echo 1 ;; esac)\nb() { :; }', ['b']],
  ['the length of an array', 'x=${#y[@]}\na() { :; }', ['a']],
  ['a word as an argument', 'echo function a\necho b c', []],
  ['an array', 'x=()\ny=(a b)\nc() { :; }', ['c']],
  ['a string with an escaped quote', 'echo "\\"a() {"\nb() { :; }', ['b']],
  ["$'…' with an escaped quote", "echo $'\\'a() {'\nb() { :; }", ['b']],
  ['one defined twice', 'a() { :; }\na() { :; }', ['a', 'a']],
  ['nothing', '', []],
] as const) {
  test(`${title}: ${JSON.stringify(expected)}`, () => assert.equal(names(text), expected));
}

test('the place is that of the name', () => {
  const [first, second] = findFunctions(
    'install.sh',
    'x=1\n  function cert-manager {\n:\n}\nfunction function_x() { :; }',
  );
  assert.equal(first?.place, { file: 'install.sh', line: 2, column: 12, length: 12 });
  assert.equal(second?.place, { file: 'install.sh', line: 5, column: 10, length: 10 });
});

test('a script as add-ons have it gives its functions and nothing from its texts', () => {
  const expected = ['cert-manager_pre_init', 'cert-manager', 'cert-manager_already_applied', 'cert-manager_join'];
  assert.equal(names(corpusScript('cert-manager')), [...expected, 'cert_manager_render']);
});

for (const [title, text] of [
  ['substitutions', '$('.repeat(100_000)],
  ['quotes', '"$('.repeat(100_000)],
  ['expansions', '${'.repeat(100_000)],
  ['parentheses', '('.repeat(100_000)],
] as const) {
  test(`a hundred thousand nested ${title} end without a result`, () => assert.equal(names(text), []));
}

test('whatever the text, scanning ends and places are those of the names', () => {
  const pieces = [
    'a',
    '()',
    ' ',
    '\n',
    '"',
    "'",
    '`',
    '$(',
    '${',
    '((',
    '<<E',
    '\nE\n',
    '\\',
    '#',
    'case',
    'esac',
    ';',
    '}',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 80 }), (parts) => {
      const text = parts.join('');
      const lines = text.split('\n');
      for (const { name, place } of findFunctions('x', text)) {
        assert.is(lines[place.line - 1]?.slice(place.column - 1, place.column - 1 + place.length), name);
      }
    }),
    cases(2000),
  );
});

test.run();
