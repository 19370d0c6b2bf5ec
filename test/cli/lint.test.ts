import { readFile, symlink } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

const test = suite('cli/lint');

const CLEAN: Files = { 'addons/ekco/1/Manifest': 'image a b:1\n', 'addons/ekco/1/install.sh': 'ekco() { :; }\n' };
const BROKEN: Files = {
  'addons/ekco/1/Manifest': 'imag x y\nimage a quay.io/a:latest\n',
  'addons/ekco/1/install.sh': 'ekco() { :; }\n',
};

test('a clean folder: one line, status 0', async () => {
  await using box = await tree(CLEAN);
  const { exitCode, stdout } = await runCommand(['lint', '--no-shellcheck'], box.path);
  assert.equal([exitCode, stdout], [0, '1 add-on, 0 errors, 0 warnings']);
});

test('findings show place, line, caret and hint, and an error ends with status 10', async () => {
  await using box = await tree(BROKEN);
  const { exitCode, stdout } = await curlew(['lint', '--no-shellcheck'], { cwd: box.path });
  assert.is(exitCode, 10);
  const lines = stdout.split('\n');
  assert.equal(lines.slice(0, 3), [
    'addons/ekco/1/Manifest:1:1 error manifest/unknown-directive: unknown directive "imag"',
    '  imag x y',
    '  ^^^^',
  ]);
  assert.match(lines[3] ?? '', /^ {2}hint: did you mean "image"\?/);
  assert.is(lines.at(-1), '1 add-on, 1 error, 1 warning');
});

test('warnings alone end with status 0', async () => {
  await using box = await tree({ ...CLEAN, 'addons/ekco/1/Manifest': 'image a quay.io/a\n' });
  const { exitCode, stdout } = await runCommand(['lint', 'ekco', '--no-shellcheck'], box.path);
  assert.is(exitCode, 0);
  assert.match(stdout, /1 add-on, 0 errors, 1 warning$/);
});

/** A version of an add-on with helpers whose names lack its prefix. */
function helpers(version: string, names: readonly string[]): Files {
  const text = names.map((name) => `${name}() { :; }\n`).join('');
  return { [`addons/ekco/${version}/Manifest`]: '', [`addons/ekco/${version}/install.sh`]: `ekco() { :; }\n${text}` };
}

test('what versions have in common is shown once, with the number of places', async () => {
  await using box = await tree({
    ...helpers('1', ['helper']),
    ...helpers('2', ['helper']),
    ...helpers('3', ['helper']),
  });
  const { stdout } = await runCommand(['lint', '--no-shellcheck'], box.path);
  const lines = stdout.split('\n');
  assert.match(lines[0] ?? '', /^addons\/ekco\/1\/install\.sh:2:1 warning hook\/prefix: /);
  assert.equal(lines.slice(4), ['  and in 2 more places (--all shows them)', '3 add-ons, 0 errors, 3 warnings']);
  const all = await runCommand(['lint', '--no-shellcheck', '--all'], box.path);
  assert.is(all.stdout.match(/warning hook\/prefix/g)?.length, 3);
});

test('a rule that warns of many things is one line; errors, JSON and annotations have them all', async () => {
  const names = Array.from({ length: 11 }, (_, index) => `helper${index}`);
  const lines = Array.from({ length: 11 }, (_, index) => `imag${index} x\n`).join('');
  await using box = await tree({ ...helpers('1', names), 'addons/ekco/1/Manifest': lines });
  const count = async (args: readonly string[], pattern: RegExp): Promise<number | undefined> => {
    const { stdout } = await runCommand(['lint', '--no-shellcheck', ...args], box.path);
    return stdout.match(pattern)?.length;
  };
  const line =
    /^warning hook\/prefix: 11 findings, the first at addons\/ekco\/1\/install\.sh:2:1 \(--all shows them\)$/gm;
  assert.is(await count([], line), 1);
  assert.is(await count([], /hook\/prefix/g), 1);
  assert.is(await count([], /error manifest\/unknown-directive/g), 11);
  assert.is(await count(['--all'], /warning hook\/prefix: the function/g), 11);
  assert.is(await count(['--json'], /"code": ?"hook\/prefix"/g), 11);
  assert.is(await count(['--format', 'github'], /title=hook\/prefix/g), 11);
});

test('a file that versions share is said to be shared', async () => {
  await using box = await tree({ ...helpers('1', []), ...helpers('2', []), 'addons/ekco/categories.json': '[]' });
  const { stdout } = await runCommand(['lint', '--no-shellcheck'], box.path);
  assert.match(stdout, /error addon\/categories: [^]*\n  in a file shared by 2 versions\n2 add-ons, 1 error,/);
});

test('--json is the same report as data', async () => {
  await using box = await tree(BROKEN);
  const { exitCode, stdout } = await runCommand(['lint', '--json', '--no-shellcheck'], box.path);
  const { addons, diagnostics, errors, warnings } = JSON.parse(stdout) as {
    addons: unknown;
    diagnostics: { code: string; place: unknown }[];
    errors: number;
    warnings: number;
  };
  assert.is(exitCode, 10);
  assert.equal(addons, [{ name: 'ekco', version: '1', path: 'addons/ekco/1', hooks: ['ekco'], directives: 1 }]);
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['manifest/unknown-directive', 'image/latest'],
  );
  assert.equal(diagnostics[0]?.place, { file: 'addons/ekco/1/Manifest', line: 1, column: 1, length: 4 });
  assert.equal([errors, warnings], [1, 1]);
});

test('--format github writes annotations', async () => {
  await using box = await tree(BROKEN);
  const { stdout } = await runCommand(['lint', '--format', 'github', '--no-shellcheck'], box.path);
  const [first = '', second = ''] = stdout.split('\n');
  assert.match(
    first,
    /^::error file=addons\/ekco\/1\/Manifest,line=1,col=1,endColumn=4,title=manifest\/unknown-directive::/,
  );
  assert.match(second, /^::warning file=addons\/ekco\/1\/Manifest,line=2,/);
});

test('what is only remarked is counted, and shown when it is asked for', async () => {
  await using box = await tree({ ...CLEAN, 'addons/ekco/1/Manifest': 'asset f https://h/f\n' });
  const short = await runCommand(['lint', '--no-shellcheck'], box.path);
  assert.equal([short.exitCode, short.stdout], [0, '1 add-on, 0 errors, 0 warnings, 1 remark (--info shows them)']);
  const long = await runCommand(['lint', '--no-shellcheck', '--info'], box.path);
  assert.match(long.stdout, /^addons\/ekco\/1\/Manifest:1:9 info asset\/no-digest: [^]*, 1 remark$/);
  const github = await runCommand(['lint', '--no-shellcheck', '--info', '--format', 'github'], box.path);
  assert.match(github.stdout, /^::notice file=addons\/ekco\/1\/Manifest,line=1,/);
  const { infos } = JSON.parse((await runCommand(['lint', '--no-shellcheck', '--json'], box.path)).stdout) as {
    infos: number;
  };
  assert.is(infos, 1);
});

test('--fix prints what it changed, goes on until nothing is left to do, and then tells the rest', async () => {
  await using box = await tree({ ...CLEAN, 'addons/ekco/1/Manifest': 'image a b:1 # c\r\nimage a b:1 # d\nimag x\n' });
  const { exitCode, stdout } = await runCommand(['lint', '--no-shellcheck', '--fix'], box.path);
  assert.is(exitCode, 10);
  assert.equal(stdout.split('\n').slice(0, 5), [
    'addons/ekco/1/Manifest:1 fixed manifest/crlf: CR removed',
    'addons/ekco/1/Manifest:1 fixed manifest/inline-comment: comment moved to a separate line',
    'addons/ekco/1/Manifest:2 fixed manifest/inline-comment: comment moved to a separate line',
    'addons/ekco/1/Manifest:2 fixed image/duplicate-id: duplicate line removed',
    'addons/ekco/1/Manifest:4:1 error manifest/unknown-directive: unknown directive "imag"',
  ]);
  assert.is(await readFile(box.at('addons/ekco/1/Manifest'), 'utf8'), '# c\nimage a b:1\n# d\nimag x\n');
});

test('control characters of a file do not reach the terminal', async () => {
  await using box = await tree({ ...CLEAN, 'addons/ekco/1/Manifest': 'imag \u001b[2J\u0007\n' });
  const { stdout } = await curlew(['lint', '--no-shellcheck'], { cwd: box.path });
  assert.not.match(stdout, /[\u0007\u001b]/);
});

test('a format that is not known is a usage error', async () => {
  await using box = await tree(CLEAN);
  const { exitCode, stderr } = await runCommand(['lint', '--format', 'xml'], box.path);
  assert.is(exitCode, 64);
  assert.match(stderr, /--format xml: must be one of text, github/);
});

test('a path that names nothing ends with the code for it', async () => {
  await using box = await tree(CLEAN);
  for (const path of ['nothing', 'addons/ekco/1/Manifest/x', 'addons/ekco/2']) {
    const { exitCode, stderr } = await runCommand(['lint', path], box.path);
    assert.is(exitCode, 14, path);
    assert.match(stderr, /no add-on matches/);
  }
});

test('a folder without add-ons is named, with what an add-on is', async () => {
  await using box = await tree({ 'web/1.0/Manifest': '', 'web/1.0/install.sh': 'web() { :; }\n' });
  for (const [folder, cwd] of [
    ['.', box.path],
    ['.', box.at('web/1.0')],
    ['web', box.path],
  ] as const) {
    const { exitCode, stderr } = await runCommand(['lint', folder], cwd);
    assert.is(exitCode, 14);
    assert.match(
      stderr,
      `no add-ons in ${folder === '.' ? cwd : box.at(folder)}\n  hint: an add-on is a folder addons/<name>`,
    );
  }
});

test('without shellcheck on the machine the rest is checked, and the lack is told', async () => {
  await using box = await tree({ ...CLEAN, 'bin/x': '' });
  await symlink('/bin/bash', box.at('bin/bash'));
  const { exitCode, stdout, stderr } = await runCommand(['lint'], box.path, { PATH: box.at('bin') });
  assert.equal([exitCode, stdout], [0, '1 add-on, 0 errors, 0 warnings']);
  assert.match(stderr, /shellcheck is not installed/);
});

test.run();
