import * as assert from '../../support/assert.ts';
import { matchesGlob } from '../../../src/manifest/lint/apply-ignores.ts';
import { lintFiles, told, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/lint/ignores');

for (const [title, path, text, expected] of [
  ['the line below', 'Manifest', '# curlew-lint-ignore image/latest\nimage a a/b:latest\n', []],
  ['with a reason', 'Manifest', '# curlew-lint-ignore image/latest -- it is what it is\nimage a a/b:latest\n', []],
  ['over blanks and comments', 'Manifest', '# curlew-lint-ignore image/latest\n\n# why\nimage a a/b:latest\n', []],
  [
    'several rules',
    'Manifest',
    '# curlew-lint-ignore image/latest image/untagged -- both\nimage a a/b\n',
    ['Manifest:1:22 x'],
  ],
  [
    'only the line below',
    'Manifest',
    '# curlew-lint-ignore image/latest\nimage a a/b:latest\nimage c a/d:latest\n',
    ['Manifest:3:9 image/latest'],
  ],
  [
    'the whole file',
    'Manifest',
    '# curlew-lint-ignore-file image/latest\nimage a a/b:latest\nimage c a/d:latest\n',
    [],
  ],
  ['in a script', 'install.sh', 'ekco() { :; }\n# curlew-lint-ignore hook/prefix\nhelper() { :; }\n', []],
  [
    'behind something in a script',
    'install.sh',
    'ekco() { :; }\nhelper() { # curlew-lint-ignore hook/prefix\n  :\n}\n',
    [],
  ],
  [
    'in YAML',
    'x.yaml',
    '# curlew-lint-ignore yaml/duplicate-key\na: 1\na: 2 # curlew-lint-ignore yaml/duplicate-key\n',
    ['x.yaml:1:22 x'],
  ],
  [
    'a rule that there is not',
    'Manifest',
    '# curlew-lint-ignore image/latst\nimage a a/b:latest\n',
    ['Manifest:1:22 lint/unknown-rule', 'Manifest:2:9 image/latest'],
  ],
  [
    'no rule at all',
    'Manifest',
    '# curlew-lint-ignore\nimage a a/b:latest\n',
    ['Manifest:1:21 lint/unknown-rule', 'Manifest:2:9 image/latest'],
  ],
  ['nothing to ignore', 'Manifest', '# curlew-lint-ignore image/latest\nimage a a/b:1\n', ['Manifest:1:22 x']],
  ['nothing to ignore in the file', 'Manifest', '# curlew-lint-ignore-file image/latest\n', ['Manifest:1:27 x']],
  [
    'an error that a build refuses',
    'Manifest',
    '# curlew-lint-ignore image/id\nimage ../a a/b:1\n',
    ['Manifest:1:22 x', 'Manifest:2:7 image/id'],
  ],
  [
    'what shellcheck would say, which did not run',
    'install.sh',
    '# curlew-lint-ignore shellcheck/SC2086\nekco() { echo $1; }\n',
    [],
  ],
  [
    'a file that a build makes',
    'Manifest',
    '# curlew-lint-ignore source/not-found\ndockerout rhel-8 addons/ekco/1/Manifest 1\n',
    [],
  ],
  ['a word that only looks like it', 'Manifest', '# see curlew-lint-ignored\nimage a a/b:1\n', []],
] as const) {
  test(`a comment ignores ${title}`, async ({ signal }) => {
    const found = await toldOf(path, text, { signal });
    const short = found.map((line) => line.replace(/ (?:error|warning|info) /, ' ').replace('lint/unused-ignore', 'x'));
    assert.equal(short, [...expected]);
  });
}

const LATEST = { 'addons/ekco/1/Manifest': 'image a a/b:latest\nasset f https://h/f\n' };

/** What is told with this configuration of a Manifest with two mistakes. */
async function configured(config: unknown, signal: AbortSignal): Promise<readonly string[]> {
  const text = typeof config === 'string' ? config : JSON.stringify(config, undefined, 1);
  return told(await lintFiles({ ...LATEST, '.curlew-lint.json': text }, { signal }));
}

const BOTH = ['Manifest:1:9 warning image/latest', 'Manifest:2:9 info asset/no-digest'];

for (const [title, config, expected] of [
  ['nothing', {}, BOTH],
  ['a rule off', { rules: { 'image/latest': 'off' } }, ['Manifest:2:9 info asset/no-digest']],
  ['a rule raised', { rules: { 'asset/no-digest': 'error' } }, [BOTH[0], 'Manifest:2:9 error asset/no-digest']],
  [
    'a group, and one of it',
    { rules: { 'image/latest': 'info', 'image/*': 'off' } },
    ['Manifest:1:9 info image/latest', BOTH[1]],
  ],
  [
    'a rule that there is not',
    { rules: { 'image/latst': 'off' } },
    ['.curlew-lint.json:3:3 warning lint/unknown-rule', ...BOTH],
  ],
  [
    'a group that there is not',
    { rules: { 'imags/*': 'off' } },
    ['.curlew-lint.json:3:3 warning lint/unknown-rule', ...BOTH],
  ],
  [
    'a severity that there is not',
    { rules: { 'image/latest': 'fatal' } },
    ['.curlew-lint.json:3:3 error lint/config', ...BOTH],
  ],
  ['a folder ignored', { ignore: ['addons/ekco/**'] }, []],
  ['a folder ignored by its name', { ignore: ['addons/ekco'] }, []],
  [
    'one rule ignored in a folder',
    { ignore: [{ files: ['addons/*/1'], rules: ['image/latest'], reason: 'old' }] },
    [BOTH[1]],
  ],
  [
    'a folder that there is not',
    { ignore: ['addons/other/**'] },
    ['.curlew-lint.json:3:3 warning lint/unused-ignore', ...BOTH],
  ],
  [
    'an ignored rule that there is not',
    { ignore: [{ files: ['addons'], rules: ['image/latest', 'x/y'] }] },
    ['.curlew-lint.json:9:5 warning lint/unknown-rule', BOTH[1]],
  ],
  ['a key that there is not', { rule: {} }, ['.curlew-lint.json:2:2 error lint/config', ...BOTH]],
  [
    'an ignore without files',
    { ignore: [{ rules: ['image/latest'] }] },
    ['.curlew-lint.json:2:2 error lint/config', ...BOTH],
  ],
  ['a text that is no JSON', '{', ['.curlew-lint.json:1:1 error lint/config', ...BOTH]],
  ['JSON that is no object', '[]', ['.curlew-lint.json:1:1 error lint/config', ...BOTH]],
  ['a file of 1 MiB', ' '.repeat(1 << 20), ['.curlew-lint.json:1:1 error lint/config', ...BOTH]],
] as const) {
  test(`a configuration with ${title}`, async ({ signal }) => {
    assert.equal(await configured(config, signal), [...expected]);
  });
}

test('a configuration cannot lower what a build refuses, and says so', async ({ signal }) => {
  const report = await lintFiles(
    { 'addons/ekco/1/Manifest': 'image ../a a/b:1\n', '.curlew-lint.json': '{"rules": {"image/id": "off"}}' },
    { signal },
  );
  assert.equal(told(report), ['.curlew-lint.json:1:12 warning lint/unused-ignore', 'Manifest:1:7 error image/id']);
});

test('where only one add-on is looked at, nothing is said of ignores for others', async ({ signal }) => {
  const files = { ...LATEST, '.curlew-lint.json': '{"ignore": ["addons/other"]}' };
  assert.equal(told(await lintFiles(files, { signal, patterns: ['ekco'] })), BOTH);
});

for (const [path, pattern, fits] of [
  ['addons/a/1/x.yaml', 'addons/**', true],
  ['addons/a/1/x.yaml', '**/x.yaml', true],
  ['addons/a/1/x.yaml', 'addons/*/1/*.yaml', true],
  ['addons/a/1/x.yaml', './addons/a/', true],
  ['addons/a/1/x.yaml', 'addons/*/x.yaml', false],
  ['addons/a/1/x.yaml', 'addons/?/1', true],
  ['addons/ab/1', 'addons/?', false],
  ['addons/a/1', 'addons/a/1/x', false],
  ['a'.repeat(5000), `${'a*'.repeat(500)}b`, false],
  [`${'a/'.repeat(200)}x`, `${'**/a/'.repeat(50)}y`, false],
] as const) {
  test(`${path.slice(0, 20)} ${fits ? 'fits' : 'does not fit'} ${pattern.slice(0, 20)}`, () => {
    assert.is(matchesGlob(path, pattern), fits);
  });
}

test.run();
