/** What the command says, and where: refusals of wrong words, help, results, failures. */
import { readdir } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

const test = suite('words of the command', { timeoutMs: 60_000 });

/** Needs nothing but itself. */
const ADDON: Files = {
  'addons/web/1.0.0/Manifest': 'asset page ./page.html\n',
  'addons/web/1.0.0/install.sh': '# shellcheck shell=bash\nweb() { true; }\n',
  'addons/web/1.0.0/page.html': '<p>hello</p>\n',
};

for (const [title, words, message] of [
  ['a command that is none', ['bild'], /unknown command "bild"/],
  ['no command', [], /Usage: curlew/],
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
    const { status, stdout, stderr } = await curlew(words, { cwd: box.path });
    assert.ok(status === 64 || status === 14, `${status}: ${stderr}`);
    assert.match(stderr, message);
    assert.is(stdout, '');
    assert.not.match(stderr, /^ {4}at /m);
    assert.equal(await readdir(box.path), ['addons']);
  });
}

test('every command shows its help, and none of it is wider than a terminal', async () => {
  await using box = await tree();
  const overview = await curlewOk(['--help'], { cwd: box.path });
  const names = [...overview.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name = '']) => name);
  assert.ok(names.includes('build') && names.includes('install'));
  for (const name of names) {
    const help = await curlewOk([name, '--help'], { cwd: box.path });
    assert.match(help, new RegExp(`^Usage: curlew ${name}`));
    assert.equal(
      help.split('\n').filter((line) => line.length > 120),
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

test('a failure is one JSON object when JSON is asked for', async () => {
  await using box = await tree(ADDON);
  const { stderr } = await curlew(['verify', 'none.tar.gz', '--json', '--quiet'], { cwd: box.path });
  const { error } = JSON.parse(stderr) as { error: { code: string; message: string } };
  assert.match(error.code, /^[A-Z_]+$/);
  assert.match(error.message, /none\.tar\.gz/);
});

test.run();
