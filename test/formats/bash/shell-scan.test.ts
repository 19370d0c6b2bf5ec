import { scanShell } from '../../../src/formats/bash/shell-scan.ts';
import { literal } from '../../../src/formats/bash/shell-text.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('migrate/shell-scan');

/** Commands as texts; what is only known when it runs is `?`. */
function commands(text: string): readonly string[] {
  return scanShell(text).commands.map(({ words }) => words.map((word) => literal(word) ?? '?').join(' '));
}

test('commands on both sides of every separator, and in every substitution', () => {
  assert.equal(commands('a; b && c || d | e & f |& g\n! h'), ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  assert.equal(commands('x="$(a "$(b)")" `c` <(d) >(e)'), ['b', 'a ?', 'c', 'd', 'e', '? ? ?']);
  assert.equal(commands('echo "${a:-$(b)}" "`c \\`d\\``"'), ['b', 'd', 'c ?', 'echo ? ?']);
  assert.equal(commands('(a; { b; }) 2>&1 >>x <y &>z'), ['a', 'b', '']);
});

test('words of the language are no commands', () => {
  const text = `if a; then b; elif c; then d; else e; fi
while f; do g; done
until h; do i; done < <(j)
for x in k l $(m); do n; done
for ((i = 0; i < 3; i++)); do o; done
select y in p; do q; done
time r`;
  const found = commands(text).filter((one) => !/^(?:for|select)\b/.test(one));
  assert.equal(found, 'abcdefghijmnoqr'.split(''));
});

test('patterns of case are no commands, whatever stands in them', () => {
  const text = `case "$x" in
  a|b) c ;;
  (d) e ;& # f)
  "g h"*) case $y in i) j ;; esac ;;
  *) k
esac
l`;
  assert.equal(commands(text), ['case ? in', 'c', 'e', 'case ? in', 'j', 'k', 'l']);
});

test('conditions and arithmetic are no commands', () => {
  assert.equal(commands('[[ $a =~ ^(b|c)$ && ( -f d || ! -n e ) ]] && f'), ['[[ ? =~ ^ b c $ -f d ! -n e ]]', 'f']);
  assert.equal(commands('((a = b << 2)); c $((d + $(e))) $(( (f) * 2 ))'), ['e', 'c ? ?']);
});

test('a here-document is text, in which only expansions count', () => {
  const { commands: all, reads } = scanShell(
    'cat <<EOF >x && a\nb $c $(d)\n\\$e\nEOF\nf <<-\'G\' | h\n\t$i\n\tG\nj <<<"$k"\n',
  );
  assert.equal(
    all.map(({ words }) => literal(words[0])),
    ['cat', 'a', 'd', 'f', 'h', 'j'],
  );
  assert.equal(
    reads.map(({ name }) => name),
    ['c', 'k'],
  );
});

test('functions in all their forms, and the function that a command stands in', () => {
  const { functions, commands: all } = scanShell(
    'a() { b; { c; }; }\nfunction d-e { f; }\nfunction g ( ) { h; }\ni ()\n{\n  j\n}\nk',
  );
  assert.equal(
    functions.map(({ name }) => name),
    ['a', 'd-e', 'g', 'i'],
  );
  assert.equal(
    all.map(({ words, within }) => `${within ?? ''}:${literal(words[0]) ?? ''}`),
    ['a:b', 'a:c', 'd-e:f', 'g:h', 'i:j', ':k'],
  );
});

test('names that get a value, and names that are asked for it', () => {
  const { assigned, reads } = scanShell(
    'A=1 B+=$C\nlocal d=${E:-x} f=(1 "$G")\nexport H\nI[3]=4 cmd ${J} ${#K} ${!L} "${M[@]}" ${N:=y} \'$O\' \\$P',
  );
  assert.equal([...assigned], ['A', 'B', 'd', 'f', 'I', 'N']);
  assert.equal(
    reads.map(({ name, guarded }) => (guarded ? `${name}?` : name)),
    ['C', 'E?', 'G', 'J', 'K', 'L', 'M', 'N?'],
  );
});

test('comments, escapes and quotes', () => {
  assert.equal(commands("a # b; c\nd\\;e 'f; g' \"h; i\" $'j\\'k' l#m\\\n n"), ['a', 'd;e f; g h; i ? l#m n']);
});

test('broken and hostile scripts give something, and soon', () => {
  for (const text of [
    '"',
    "'",
    '$(',
    '${',
    '`',
    '((',
    '[[',
    'case',
    'a() {',
    '<<',
    '<<"',
    '\\',
    '}',
    'esac',
    ')',
    'x=(',
  ]) {
    scanShell(text);
    scanShell(text.repeat(2000));
    scanShell(`${text}\n`.repeat(2000));
  }
  // Deep enough for the stack to end, and more commands than are kept.
  for (const text of ['$((', '$(', '"$(', '${a', '((', '`', '(', '{ ']) scanShell(text.repeat(100_000));
  assert.ok(scanShell('a\n'.repeat(100_000)).commands.length < 60_000);
  assert.equal(commands('\u0000\u0001 a'), ['\u0000\u0001 a']);
});

test.run();
