/** What the command says, and where: refusals of wrong words, help, results, failures. */
import { readdir } from 'node:fs/promises';
import { execa } from 'execa';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

// not fast: starts the command again and again
const test = suite('words of the command');

/** Needs nothing but itself. */
const ADDON: Files = {
  'addons/web/1.0.0/Manifest': 'asset page ./page.html\n',
  'addons/web/1.0.0/install.sh': '# shellcheck shell=bash\nweb() { true; }\n',
  'addons/web/1.0.0/page.html': '<p>hello</p>\n',
};

for (const [title, words, message] of [
  ['a command that is none', ['bild'], /unknown command "bild"/],
  ['a command of another name', ['remove'], /unknown command "remove"\n {2}hint: did you mean curlew uninstall\?/],
  ['no command', [], /Usage: curlew/],
  ['the first word of a command alone', ['installer'], /Usage: curlew installer COMMAND[^]*\n {2}installer id +Print/],
  ['an option inside of a command', ['installer', '--quiet', 'id'], /hint: curlew installer COMMAND --quiet; /],
  ['an option of another command before the command', ['--fix', 'build'], /hint: curlew COMMAND --fix; /],
  ['help about two commands', ['help', 'build', 'lint'], /curlew help: unexpected argument "lint"/],
  ['an option that is none', ['build', '--ouput', 'x'], /--ouput/],
  ['an option without its value', ['build', '--out'], /--out/],
  ['an add-on that is none', ['build', 'wbe'], /wbe/],
  ['an architecture that is none', ['build', '--arch', 'mips'], /mips/],
  ['a number of jobs that is none', ['build', '--jobs', '0'], /--jobs/],
  ['bundle without a spec', ['bundle', '--from', 'store', '-o', 'b'], /error USAGE/],
  ['install from nowhere', ['install', '--root', 'x', '--unconfined'], /--bundle/],
  ['a mirror without a host', ['build', '--registry-mirror', 'nowhere'], /mirror/],
] as const) {
  test(`wrong words are refused before anything happens: ${title}`, async () => {
    await using box = await tree(ADDON);
    const { exitCode, stdout, stderr } = await curlew(words, { cwd: box.path });
    assert.ok(exitCode === 64 || exitCode === 14, `${exitCode}: ${stderr}`);
    assert.match(stderr, message);
    assert.is(stdout, '');
    assert.not.match(stderr, /^ {4}at /m);
    assert.equal(await readdir(box.path), ['addons']);
  });
}

test('every command shows its help, and none of it is wider than a terminal', async () => {
  await using box = await tree();
  const overview = await curlewOk(['help', 'commands'], { cwd: box.path });
  const names = [...overview.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2,}/gm)].map(([, name = '']) => name);
  assert.ok(names.includes('build') && names.includes('install'));
  for (const name of names) {
    const help = await curlewOk([...name.split(' '), '--help'], { cwd: box.path });
    assert.match(help, new RegExp(`^Usage: curlew ${name}`));
    assert.equal(
      help.split('\n').filter((line) => line.length > 80),
      [],
      name,
    );
  }
});

test('results go to standard output, progress to standard error, and nothing there when quiet', async () => {
  await using box = await tree(ADDON);
  const { stdout, stderr } = await curlew(['build', 'web', '--json', '--quiet'], {
    cwd: box.path,
  });
  const { packages } = JSON.parse(stdout) as { packages: readonly { name: string; digest: string }[] };
  assert.is(packages[0]?.name, 'web');
  assert.match(packages[0]?.digest ?? '', /^sha256:[0-9a-f]{64}$/);
  assert.is(stderr, '');
});

for (const [title, words, status, code] of [
  ['of a command', ['verify', 'none.tar.gz'], 14, 'NOT_FOUND'],
  ['of its words', ['verify', '--nothing'], 64, 'USAGE'],
  ['of a command that is none', ['verfy'], 64, 'USAGE'],
] as const) {
  test(`a failure ${title} is one JSON document when JSON is asked for, and still told to people`, async () => {
    await using box = await tree(ADDON);
    const ended = await curlew([...words, '--json'], { cwd: box.path });
    assert.is(ended.exitCode, status);
    const { error } = JSON.parse(ended.stdout) as { error: { code: string; message: string } };
    assert.is(error.code, code);
    assert.match(ended.stderr, `error ${code}: ${error.message}`);
  });
}

test('a near name is suggested for commands and options', async () => {
  await using box = await tree(ADDON);
  assert.match((await curlew(['bild'], { cwd: box.path })).stderr, /hint: did you mean curlew build\?/);
  assert.match((await curlew(['build', '--outt'], { cwd: box.path })).stderr, /hint: did you mean --out\?/);
  assert.is(
    await curlewOk(['help', 'build'], { cwd: box.path }),
    await curlewOk(['build', '--help'], { cwd: box.path }),
  );
});

test('standard output that cannot be written is a failure with a code, a reader that left is none', async () => {
  await using box = await tree(ADDON);
  const into = async (line: string) => execa('bash', ['-c', line, 'bash', MAIN], { cwd: box.path, reject: false });
  const full = await into('node "$1" lint --no-shellcheck >/dev/full');
  assert.is(full.exitCode, 18, full.stderr);
  assert.match(full.stderr, /^error NO_SPACE: cannot write to standard output/);
  assert.not.match(full.stderr, /^ {4}at /m);
  const left = await into('set -o pipefail; node "$1" build --dry-run | true');
  assert.is(left.exitCode, 0, left.stderr);
  assert.is(left.stderr, '');
});

test.run();
