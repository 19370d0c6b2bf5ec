import { baseImages, labelled, readDockerfile } from '../../../src/build/containers/dockerfile.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/dockerfile');

for (const [what, text, images] of [
  ['a plain base', 'FROM ubuntu:22.04\n', ['ubuntu:22.04']],
  ['a base in lower case, with a platform and a name', 'from --platform=linux/amd64 a:1 as b\nFROM b\n', ['a:1']],
  ['no newline at the end, CRLF before', '# x\r\nFROM a:1\r\nFROM b:2', ['a:1', 'b:2']],
  ['the version of the step', 'ARG VERSION=1\nFROM a:$VERSION\n', ['a:1.6.33']],
  ['a default', 'ARG TAG="2 "\nARG IMAGE=a:${TAG}\nFROM ${IMAGE}\n', ['a:2 ']],
  ['several in one ARG', "ARG A=a B='b'\nFROM $A:$B\n", ['a:b']],
  ['a default in place', 'FROM a:${TAG:-3}\n', ['a:3']],
  ['another value when set', 'ARG TAG=x\nFROM a${TAG:+b}:1\n', ['ab:1']],
  ['no value', 'ARG TAG\nFROM $TAG\n', ['']],
  ['an ARG within a stage is not seen by FROM', 'FROM a:1\nARG TAG=2\nFROM b:${TAG:-3}\n', ['a:1', 'b:3']],
  ['no image at all', 'FROM scratch\nCOPY --from=0 /a /b\n', []],
  [
    'images to copy from',
    'FROM a:1 AS one\nCOPY --from=ONE /a /b\nCOPY --chown=1:1 --from=c:1 /a /b\n',
    ['a:1', 'c:1'],
  ],
  ['words in continued lines and comments', 'FROM \\\n# FROM no:1\n\n  a:1\nRUN echo \\\nFROM no:2\n', ['a:1']],
  ['another escape character', '# escape=`\nFROM `\n a:1\nRUN dir C:\\\nFROM b:1\n', ['a:1', 'b:1']],
] as const) {
  test(`bases: ${what}`, () => {
    assert.equal(baseImages(readDockerfile(text), { VERSION: '1.6.33' }), images);
  });
}

for (const [usesContext, text] of [
  [false, 'FROM a\nRUN cp a b\nCOPY --from=0 a b\n'],
  [false, 'FROM a\nADD https://host/file http://host/file /x\n'],
  [true, 'FROM a\nADD https://host/file file /x\n'],
  [true, 'FROM a\nadd ["a", "b"]\n'],
  [true, 'FROM a\nCOPY --chmod=1 a b\n'],
] as const) {
  test(`${JSON.stringify(text.slice(7))} ${usesContext ? 'needs' : 'needs no'} context`, () => {
    assert.is(readDockerfile(text).usesContext, usesContext);
  });
}

test('labels follow every FROM, and lines can be counted back', () => {
  const text = '# first\nARG A=1\nFROM a:$A\nRUN one\nFROM \\\n  b\nRUN two\n';
  const dockerfile = readDockerfile(text);
  const added = labelled(dockerfile, { run: 'a"b' });
  assert.equal(added.split('\n'), [
    '# first',
    'ARG A=1',
    'FROM a:$A',
    'LABEL run="a\\"b"',
    'RUN one',
    'FROM \\',
    '  b',
    'LABEL run="a\\"b"',
    'RUN two',
    '',
  ]);
  const lines = text.split('\n');
  for (const [index, line] of added.split('\n').entries()) {
    if (line.startsWith('LABEL')) continue;
    assert.is(lines[dockerfile.lineOf(index + 1) - 1], line);
  }
});

test('a last FROM without a newline gets its labels all the same', () => {
  assert.is(labelled(readDockerfile('FROM a'), { x: '1' }), 'FROM a\nLABEL x="1"');
});

test('blanks without end are no work without end', () => {
  const blanks = ' '.repeat(200_000);
  assert.equal(
    baseImages(readDockerfile(`#a=${blanks}\u2028x\nFROM a:1${blanks}\u2028\nRUN x${blanks}\u2028x\n`), {}),
    ['a:1'],
  );
  assert.equal(baseImages(readDockerfile(`# escape = \` ${blanks}\nFROM \`\n a:1\n`), {}), ['a:1']);
});

test('arguments that stand for arguments are refused before they fill the memory', () => {
  const args = Array.from({ length: 12 }, (_, at) => `ARG A${at + 1}=${`$A${at}`.repeat(10)}\n`).join('');
  const laughs = readDockerfile(`ARG A0=aaaaaaaaaa\n${args}FROM a:$A12\n`);
  assert.throwsWith(
    () => baseImages(laughs, {}),
    'CONTAINER_FAILED',
    /the Dockerfile: A3 has more than 4096 characters/,
  );
  const open = readDockerfile(`FROM ${'${a:-'.repeat(200_000)}\n`);
  assert.throwsWith(() => baseImages(open, {}), 'CONTAINER_FAILED', /FROM has more than 4096/);
});

test.run();
