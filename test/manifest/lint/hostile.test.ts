import { finder } from '../../../src/manifest/rules.ts';
import { checkHooks } from '../../../src/manifest/lint-hooks.ts';
import { fixManifest } from '../../../src/manifest/lint/fix.ts';
import { matchesGlob } from '../../../src/manifest/lint/apply-ignores.ts';
import { findIgnores } from '../../../src/manifest/lint/ignore-comments.ts';
import { yamlFacts } from '../../../src/manifest/lint/yaml-facts.ts';
import { parseManifest } from '../../../src/manifest/parse.ts';
import { findFunctions } from '../../../src/formats/bash/shell.ts';
import * as assert from '../../support/assert.ts';
import { lintFiles, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

// Texts that took minutes in which not even Ctrl-C was heard.
const test = suite('manifest/lint/hostile', { timeoutMs: 15_000 });

const place = { file: 'Manifest', line: 1, column: 1, length: 1 };

test('a line of carriage returns is one mistake', () => {
  const { diagnostics } = parseManifest('Manifest', `${'\r'.repeat(1_000_000)}x`);
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['manifest/control-character'],
  );
});

test('a comment that ignores rules may hold more of its kind, and whatever ends a line elsewhere', () => {
  const text = `${'#curlew-lint-ignore '.repeat(200_000)}\rx`;
  assert.is(findIgnores('install.sh', text).length, 1000);
  assert.equal(
    findIgnores('install.sh', '# curlew-lint-ignore image/latest -- why\r\nx\r\n').map(({ rule, line }) => [
      rule,
      line,
    ]),
    [['image/latest', 2]],
  );
});

test('a pattern of slashes fits nothing, one of folders everything', () => {
  assert.not.ok(matchesGlob('addons/a', `${'/'.repeat(1_000_000)}x`));
  assert.ok(matchesGlob('addons/a/b', `${'**/'.repeat(80_000)}b`));
});

test('lines of YAML with what looks like blocks of text are read once', async () => {
  const { uses } = await yamlFacts(`a: &x 1\nimage: r.example/x:1\n${': |#'.repeat(250_000)}\u2028\n`);
  assert.is(uses.length, 0);
});

test('functions of one line are found where they are', () => {
  const found = findFunctions('install.sh', 'a() { :; };'.repeat(200_000));
  assert.is(found.length, 200_000);
  assert.equal(found.at(-1)?.place, { file: 'install.sh', line: 1, column: 199_999 * 11 + 1, length: 1 });
});

test('of a script that defines anything, a hundred functions are reported', () => {
  const text = Array.from({ length: 5000 }, (_, index) => `a${index}() { :; }\n`).join('');
  const codes: string[] = [];
  checkHooks(
    { name: 'ekco', version: '1' },
    'install.sh',
    { text, functions: findFunctions('install.sh', text) },
    finder((one) => codes.push(one.code)),
  );
  assert.is(codes.filter((code) => code === 'hook/prefix').length, 100);
});

test('a long comment is looked through once for a name', () => {
  const text = `ekco_pre_ini() { :; }\nekco() { :; }\n#${' ekco_pre_ini2'.repeat(300_000)}\n`;
  const codes: string[] = [];
  checkHooks(
    { name: 'ekco', version: '1' },
    'install.sh',
    { text, functions: findFunctions('install.sh', text) },
    finder((one) => codes.push(one.code)),
  );
  assert.equal(codes, ['hook/misspelt']);
});

test('a comment far behind a directive is moved', () => {
  const found = [{ code: 'manifest/inline-comment', severity: 'error', place }] as const;
  const { text } = fixManifest(`yum a${' '.repeat(500_000)}b \t # c # d\n`, found);
  assert.is(text, `# c # d\nyum a${' '.repeat(500_000)}b\n`);
});

test('JSON that is nested without end is a mistake', async ({ signal }) => {
  const deep = `{"requires":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  assert.equal(await toldOf('schema.json', deep, { signal }), ['schema.json:1:1 error addon/schema']);
  const { diagnostics } = await lintFiles({ 'addons/ekco/categories.json': deep }, { signal });
  assert.match(diagnostics[0]?.message ?? '', /^not JSON: it nests more than 500/);
});

test('a Manifest of thousands of images is not held against every text', async ({ signal }) => {
  const Manifest = Array.from({ length: 600 }, (_, index) => `image i${index} r.example/a/b${index}:1\n`).join('');
  const yaml = Array.from({ length: 2000 }, (_, index) => `- image: r.example/x/y${index}:1\n`).join('');
  const files = { 'addons/ekco/1/Manifest': Manifest, 'addons/ekco/1/a.yaml': yaml };
  const { diagnostics } = await lintFiles(files, { signal });
  const codes = diagnostics.map(({ code }) => code);
  assert.is(codes.filter((code) => code === 'image/not-listed').length, 1000);
  assert.not.ok(codes.includes('image/unused'));
});

test.run();
