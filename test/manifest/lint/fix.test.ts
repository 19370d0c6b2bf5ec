import * as fc from 'fast-check';
import * as assert from '../../support/assert.ts';
import { chmod, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { finder } from '../../../src/manifest/rules.ts';
import { findAddons } from '../../../src/manifest/find-addons.ts';
import { checkFinalNewline, lintAddons } from '../../../src/manifest/lint.ts';
import { fixManifest, fixScript } from '../../../src/manifest/lint/fix.ts';
import { type FixedLine, fixFiles } from '../../../src/manifest/lint/fix-files.ts';
import { parseManifest } from '../../../src/manifest/parse.ts';
import { suite } from '../../support/suite.ts';
import { type Files, tree, type Tree } from '../../support/tree.ts';

const test = suite('manifest/lint/fix');

/** The text after one round, and what was done. */
function fixed(text: string): readonly [string, readonly string[]] {
  const found = [...parseManifest('Manifest', text).diagnostics];
  checkFinalNewline(
    'Manifest',
    text,
    finder((one) => found.push(one)),
  );
  const { text: better, changes } = fixManifest(text, found);
  return [better, changes.map(({ line, code }) => `${line} ${code}`)];
}

for (const [title, before, after, changes] of [
  ['a clean text', '# c\n\nimage a b:1\n', '# c\n\nimage a b:1\n', []],
  ['blanks that nobody minds', '  image \t a b:1  \n\n\n', '  image \t a b:1  \n\n\n', []],
  [
    'CR LF',
    'image a b:1\r\n\r\napt x\r\n',
    'image a b:1\n\napt x\n',
    ['1 manifest/crlf', '2 manifest/crlf', '3 manifest/crlf'],
  ],
  ['CR LF in some lines', 'image a b:1\r\napt x\n', 'image a b:1\napt x\n', ['1 manifest/crlf']],
  ['a byte order mark', '\u{FEFF}image a b:1\n', 'image a b:1\n', ['1 manifest/byte-order-mark']],
  ['a missing line end', 'image a b:1', 'image a b:1\n', ['1 manifest/no-final-newline']],
  [
    'a comment behind a directive',
    ' image a b:1  # why # not\n',
    ' # why # not\n image a b:1\n',
    ['1 manifest/inline-comment'],
  ],
  [
    'all at once',
    '\u{FEFF}image a b:1 # c\r\napt x\r\napt x',
    '# c\nimage a b:1\napt x\n',
    [
      '1 manifest/byte-order-mark',
      '1 manifest/crlf',
      '1 manifest/inline-comment',
      '2 manifest/crlf',
      '3 packages/duplicate',
      '3 manifest/no-final-newline',
    ],
  ],
  ['a line twice', 'image a b:1\napt x\nimage  a  b:1\n', 'image a b:1\napt x\n', ['3 image/duplicate-id']],
  ['a line three times', 'apt x\napt x\napt x\n', 'apt x\n', ['2 packages/duplicate', '3 packages/duplicate']],
  ['an asset twice', 'asset f ./f\nasset f ./f\n', 'asset f ./f\n', ['2 asset/duplicate-name']],
  ['an id for two images', 'image a b:1\nimage a b:2\n', 'image a b:1\nimage a b:2\n', []],
  ['an id for two images, and a CR', 'image a b:1\nimage a b:2\r\n', 'image a b:1\nimage a b:2\r\n', []],
  ['a line with another error', 'imag a b:1\r\n', 'imag a b:1\r\n', []],
  ['a comment where a word lacks', 'image a # b:1\n', 'image a # b:1\n', []],
  ['an untagged image', 'image a b\n', 'image a b\n', []],
  ['an empty text', '', '', []],
] as const) {
  test(`a Manifest with ${title}`, () => {
    assert.equal(fixed(before), [after, [...changes]]);
  });
}

test('what was fixed needs no second round, and asks for the same', () => {
  const [once] = fixed('\u{FEFF}image a b:1 # c\r\napt x\r\napt x');
  assert.equal(fixed(once), [once, []]);
  assert.is(parseManifest('Manifest', once).manifest.requests.length, 2);
});

test('whatever the text, fixing loses no request, makes no mistake, and comes to an end', () => {
  const word = fc.constantFrom(
    'image',
    'asset',
    'apt',
    'a',
    'b:1',
    './f',
    '# c',
    '#',
    'x',
    ' ',
    '\t',
    '\r',
    '\u{FEFF}',
  );
  const line = fc.array(word, { maxLength: 6 }).map((words) => words.join(' '));
  const texts = fc.array(line, { maxLength: 8 }).map((lines) => lines.join('\n'));
  const asked = (text: string): readonly string[] => [
    ...new Set(
      parseManifest('M', text).manifest.requests.map((one) => JSON.stringify({ ...one, place: 0 }, withoutPlaces)),
    ),
  ];
  // Behind a comment that does not belong there nobody has looked yet: as many as it hides may come out.
  const mistakes = (text: string, hidden = 0): number =>
    parseManifest('M', text)
      .diagnostics.filter(({ severity }) => severity === 'error')
      .reduce((sum, { code }) => sum + (code === 'manifest/inline-comment' ? 1 + hidden : 1), 0);
  fc.assert(
    fc.property(texts, (text) => {
      const [once] = fixed(text);
      const [twice] = fixed(once);
      const [thrice] = fixed(twice);
      const kept = new Set(asked(once));
      return asked(text).every((one) => kept.has(one)) && mistakes(once) <= mistakes(text, 1) && thrice === twice;
    }),
    { examples: [['image ./f ./f # c']] },
  );
});

function withoutPlaces(key: string, value: unknown): unknown {
  return key === 'place' ? undefined : value;
}

const CRLF = [
  { code: 'install/crlf', severity: 'error', place: { file: 'f', line: 1, column: 2, length: 1 } },
] as const;

for (const [title, before, after] of [
  ['whose every line ends in CR LF', 'a\r\nb\r\n', 'a\nb\n'],
  ['that mixes line ends', 'a\r\nb\n', 'a\r\nb\n'],
  ['with a CR within a line', 'a\rb\r\n', 'a\rb\r\n'],
] as const) {
  test(`a script ${title}`, () => {
    assert.is(fixScript(before, CRLF).text, after);
  });
}

test('a byte order mark of install.sh is an error, and removed together with CR LF', async ({ signal }) => {
  await using box = await tree({
    'addons/ekco/1/Manifest': '',
    'addons/ekco/1/install.sh': '\u{FEFF}ekco() { :; }\r\n',
  });
  const found = await findAddons(box.path, [], { signal });
  const { diagnostics } = await lintAddons(found, {
    shellcheck: false,
    complete: true,
    searchPath: '/usr/bin:/bin',
    signal,
  });
  assert.ok(diagnostics.some(({ code, severity }) => code === 'install/byte-order-mark' && severity === 'error'));
  assert.equal(
    (await fix(box, signal)).map(({ code }) => code),
    ['install/byte-order-mark', 'install/crlf'],
  );
  assert.is(await readFile(box.at('addons/ekco/1/install.sh'), 'utf8'), 'ekco() { :; }\n');
});

async function fix(box: Tree, signal: AbortSignal): Promise<readonly FixedLine[]> {
  const found = await findAddons(box.path, [], { signal });
  const options = { shellcheck: false, complete: true, searchPath: process.env['PATH'] ?? '', signal };
  return fixFiles(found.folders, (await lintAddons(found, options)).diagnostics, { signal });
}

const FILES: Files = {
  'addons/ekco/1/Manifest': 'image a b:1\r\nimage ü c:1\r\nimage é@ d:1\r\n',
  'addons/ekco/1/install.sh': '#!/bin/bash\r\nekco() { :; }\r\n',
  'addons/ekco/1/x.yaml': 'a: 1\r\n',
};

test('files keep their mode, and nothing else is touched', async ({ signal }) => {
  await using box = await tree(FILES);
  await chmod(box.at('addons/ekco/1/Manifest'), 0o640);
  const fixed = await fix(box, signal);
  assert.equal(
    fixed.map(({ file, line, code }) => `${file}:${line} ${code}`),
    ['addons/ekco/1/Manifest:1 manifest/crlf', 'addons/ekco/1/install.sh:1 install/crlf'],
  );
  // Two lines have an error that nobody can put right.
  assert.is(await readFile(box.at('addons/ekco/1/Manifest'), 'utf8'), 'image a b:1\nimage ü c:1\r\nimage é@ d:1\r\n');
  assert.is((await stat(box.at('addons/ekco/1/Manifest'))).mode & 0o777, 0o640);
  assert.is((await stat(box.at('addons/ekco/1/install.sh'))).mode & 0o777, 0o755);
  assert.is(await readFile(box.at('addons/ekco/1/x.yaml'), 'utf8'), 'a: 1\r\n');
  assert.equal(await readdir(box.at('addons/ekco')), ['1']);
});

test('a file with bytes that are no text is left alone', async ({ signal }) => {
  const bytes = Buffer.concat([Buffer.from('image a b:1\r\n# '), Uint8Array.of(0xff, 0x0a)]);
  await using box = await tree({ 'addons/ekco/1/install.sh': 'ekco() { :; }\n', 'addons/ekco/1/Manifest': bytes });
  assert.equal(await fix(box, signal), []);
  assert.ok((await readFile(box.at('addons/ekco/1/Manifest'))).equals(bytes));
});

test('a link is not followed', async ({ signal }) => {
  await using box = await tree({ 'addons/ekco/1/install.sh': 'ekco() { :; }\n', outside: 'image a b:1\r\n' });
  await symlink(box.at('outside'), box.at('addons/ekco/1/Manifest'));
  await fix(box, signal);
  assert.is(await readFile(box.at('outside'), 'utf8'), 'image a b:1\r\n');
});

test('what is ignored is not fixed', async ({ signal }) => {
  const text = '# curlew-lint-ignore-file manifest/no-final-newline\nimage a b:1';
  await using box = await tree({ 'addons/ekco/1/install.sh': 'ekco() { :; }\n', 'addons/ekco/1/Manifest': text });
  assert.equal(await fix(box, signal), []);
});

test('findings of an older text do no harm to a newer one', async ({ signal }) => {
  await using box = await tree(FILES);
  const found = await findAddons(box.path, [], { signal });
  const options = { shellcheck: false, complete: true, searchPath: process.env['PATH'] ?? '', signal };
  const { diagnostics } = await lintAddons(found, options);
  await writeFile(box.at('addons/ekco/1/Manifest'), 'image new b:1\n# c\n');
  await writeFile(box.at('addons/ekco/1/install.sh'), 'ekco() { :; }\n');
  assert.equal(fixFiles(found.folders, diagnostics, { signal }), []);
  assert.is(await readFile(box.at('addons/ekco/1/Manifest'), 'utf8'), 'image new b:1\n# c\n');
});

test.run();
