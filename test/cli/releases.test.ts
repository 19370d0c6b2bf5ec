import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import type { PromoteResult } from '../../src/ship/release/promote.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { madePackage, publishAs } from '../support/releases.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { serveFolder } from '../support/web-server.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: starts the command again and again
const test = suite('cli/releases');

/** A box with a store `staging` whose release s1 has rook and ekco. */
async function staged(signal: AbortSignal): Promise<Tree> {
  const box = await tree();
  await mkdir(box.at('staging'));
  const files = [
    await madePackage(box, 'rook', '1.0.4', 'r1'),
    await madePackage(box, 'rook', '1.0.4-14.2.21', 'r2'),
    await madePackage(box, 'ekco', '0.28.14', 'e'),
  ];
  await publishAs(createFolderStore(box.at('staging')), 's1', files, signal);
  return box;
}

test('a release goes from store to store under the name behind the @', async ({ signal }) => {
  await using box = await staged(signal);
  const done = await curlew(['promote', '--from', 'staging@s1', '--to', 'dist@v1', '--deep'], { cwd: box.path });
  assert.is(done.exitCode, 0, done.stderr);
  assert.match(done.stdout, 'rook 1.0.4-14.2.21: copied by the store');
  assert.match(done.stdout, /v1 is the current release, promoted from s1 of .*staging$/);
  assert.is(await readFile(box.at('dist/VERSION'), 'utf8'), 'v1');
  const again = await runCommand(['promote', '--from', 'staging', '--to', 'dist@v1', '--json', '--quiet'], box.path);
  const { packages } = JSON.parse(again.stdout) as PromoteResult;
  assert.ok(packages.every(({ outcome }) => outcome === 'present'));
});

for (const [what, status, words] of [
  ['no source', 64, ['--to', 'dist']],
  ['no target', 64, ['--from', 'staging']],
  ['an operand', 64, ['s1', '--from', 'staging', '--to', 'dist']],
  ['a release that is none', 64, ['--from', 'staging@..', '--to', 'dist']],
  ['an empty release', 64, ['--from', 'staging@', '--to', 'dist']],
  ['a release that is not there', 14, ['--from', 'staging@s9', '--to', 'dist']],
  ['a store that is not there', 14, ['--from', 'nowhere', '--to', 'dist']],
  ['--require-signed and no key', 64, ['--from', 'staging', '--to', 'dist', '--require-signed']],
] as const) {
  test(`promote with ${what} is refused and makes nothing`, async ({ signal }) => {
    await using box = await staged(signal);
    const { exitCode, stdout, stderr } = await runCommand(['promote', ...words], box.path);
    assert.is(exitCode, status, stderr);
    assert.is(stdout, '');
    assert.ok(!(await readdir(box.path)).includes('dist'));
  });
}

test('versions are listed in order, and a word is answered with the version that it means', async ({ signal }) => {
  await using box = await staged(signal);
  const all = await curlew(['versions', '--from', 'staging'], { cwd: box.path });
  const [head = '', time = ''] = all.stdout.split(', published ');
  assert.is(head, `ekco: 0.28.14\nrook: 1.0.4-14.2.21 1.0.4\nrelease s1 of ${box.at('staging')}`);
  assert.match(time, /^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  const some = await runCommand(['versions', 'rook@1.0.x', 'rook@1.0.4', 'ekco', '--from', 'staging'], box.path);
  assert.match(
    some.stdout,
    /^rook 1.0.4-14.2.21 \(greatest patch of 1.0\)\nrook 1.0.4 \(exact\)\nekco 0.28.14 {2}amd64 \d+(?:\.\d)? kB$/,
  );
  const named = await runCommand(['versions', 'ekco', '--from', 'staging'], box.path);
  assert.match(named.stdout, /^ekco 0\.28\.14 {2}amd64 .*\nrelease s1 of .*, published [-0-9]{10} [0-9:]{5} UTC$/);
  const near = await runCommand(['versions', 'rok', '--from', 'staging'], box.path);
  assert.is(near.exitCode, 14);
  assert.match(near.stderr, 'did you mean rook?');
  assert.is((await runCommand(['versions', 'rook@2.0.x', '--from', 'staging'], box.path)).exitCode, 11);
  assert.is((await runCommand(['versions'], box.path)).exitCode, 64);
});

test('a release that a store does not have is answered with those that it has, the newest first', async ({
  signal,
}) => {
  await using box = await staged(signal);
  const more = await madePackage(box, 'ekco', '0.28.15', 'e2');
  await publishAs(createFolderStore(box.at('staging')), 's2', [more], signal);
  for (const words of [
    ['versions', '--from', 'staging', '--release', 'r1'],
    ['promote', '--from', 'staging@r1', '--to', 'dist'],
  ]) {
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 14);
    assert.match(
      stderr,
      /release "r1" does not exist\n {2}hint: did you mean s[12]\? existing releases: s[12], s[12]$/,
    );
  }
  const at = await runCommand(['versions', '--from', 'staging@s1'], box.path);
  assert.match(at.stderr, `the store ${box.at('staging')} with --release s1`);
  const nowhere = await runCommand(['versions', '--from', 'stagng'], box.path);
  assert.match(nowhere.stderr, `create a store there with curlew publish --to ${box.at('stagng')}`);
});

test('publish takes the order of versions from versions.json beside them, and refuses one that is none', async () => {
  const script = 'web() { :; }\n';
  await using box = await tree({
    'addons/web/1.0.0/Manifest': '',
    'addons/web/1.0.0/install.sh': script,
    'addons/web/1.1.0/Manifest': '',
    'addons/web/1.1.0/install.sh': script,
    'addons/web/versions.json': '["1.0.0"]',
  });
  const done = await curlew(['publish', '--to', 'dist', '--release', 'v1'], { cwd: box.path });
  assert.is(done.exitCode, 0, done.stderr);
  assert.match((await runCommand(['versions', '--from', 'dist'], box.path)).stdout, /^web: 1\.0\.0 1\.1\.0\n/);
  await writeFile(box.at('addons/web/versions.json'), '{}');
  const refused = await runCommand(['publish', '--to', 'dist', '--release', 'v2'], box.path);
  assert.is(refused.exitCode, 10);
  assert.match(refused.stderr, /addons\/web\/versions\.json: not a version order: it is not a list/);
});

test('old releases go from a store, after a dry run has named them', async ({ signal }) => {
  await using box = await staged(signal);
  const more = await madePackage(box, 'ekco', '0.28.15', 'e2');
  await publishAs(createFolderStore(box.at('staging')), 's2', [more], signal);
  const words = ['prune', '--from', 'staging', '--keep', '1'];
  const planned = await runCommand([...words, '--dry-run'], box.path);
  assert.match(planned.stdout, /^s1: would be removed, 6 objects, .*enough newer releases exist/);
  assert.match(planned.stdout, '1 release kept; current is s2');
  const young = await runCommand([...words, '--older-than', '1d'], box.path);
  assert.match(
    young.stdout,
    /^s1: kept \(it is not old enough\)\ns2: kept \(it is the current release\)\n.*2 releases kept/,
  );
  assert.match((await curlew(words, { cwd: box.path })).stdout, /^s1: removed, 6 objects/);
  assert.is((await runCommand(['versions', '--from', 'staging'], box.path)).exitCode, 0);
  for (const wrong of [[], ['--keep', '0'], ['--older-than', 'long']]) {
    assert.is((await runCommand(['prune', '--from', 'staging', ...wrong], box.path)).exitCode, 64);
  }
});

test('versions are also listed from a web server with a store', async ({ signal }) => {
  await using box = await staged(signal);
  await using server = await serveFolder(box.at('staging'));
  const words = ['versions', '--from', server.url, '--allow-http', '127.0.0.1'];
  const { exitCode, stdout, stderr } = await runCommand(words, box.path);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^ekco: 0\.28\.14\nrook: .*\nrelease s1 of http:/);
});

test('a release whose name sorts before that of the current one says so when it becomes current', async ({
  signal,
}) => {
  await using box = await staged(signal);
  await mkdir(box.at('dist'));
  const promote = ['promote', '--from', 'staging@s1', '--to'];
  for (const [target, note] of [
    ['dist@v2', false],
    ['dist@v10', false],
    ['dist@v9', true],
  ] as const) {
    const { exitCode, stderr } = await runCommand([...promote, target], box.path);
    assert.is(exitCode, 0, stderr);
    assert.is(stderr.includes('v9 becomes the current release, although its name sorts before v10'), note, stderr);
  }
});

test('pruning without a terminal and without --yes is done, with a warning', async ({ signal }) => {
  await using box = await staged(signal);
  const words = ['prune', '--from', 'staging', '--keep', '1'];
  assert.match((await runCommand(words, box.path)).stderr, 'a later version of curlew will refuse this');
  for (const more of ['--yes', '--dry-run']) assert.is((await runCommand([...words, more], box.path)).stderr, '');
});

for (const words of [['prune', '--keep', '1', '--from'], ['reindex'], ['sign', '--key', 'x.key', '--store']]) {
  test(`${words[0]} needs a store that it can write, and promises nothing else of one on a web server`, async () => {
    await using box = await tree();
    const { stderr } = await runCommand([...words, 'http://127.0.0.1/dist'], box.path);
    const [why = '', hint] = stderr.trimEnd().split('\n');
    assert.match(why, /^error UNSUPPORTED: .*: this command does not write stores of web servers$/);
    assert.is(hint, '  hint: use a folder or s3://bucket/prefix');
    const missing = await runCommand([...words, 'none'], box.path);
    assert.match(missing.stderr, /no such folder/);
  });
}

test('a damaged catalog is named with the command that mends it, and that command does', async ({ signal }) => {
  await using box = await staged(signal);
  await writeFile(box.at('staging/s1/index.json'), '{');
  for (const words of [
    ['versions', '--from', 'staging'],
    ['promote', '--from', 'staging', '--to', 'dist'],
  ]) {
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 16);
    assert.match(stderr, 's1/index.json');
    assert.match(stderr, `curlew reindex ${box.at('staging')} --release s1`);
  }
  const mended = await curlew(['reindex', box.at('staging'), '--release', 's1'], { cwd: box.path });
  assert.is(mended.exitCode, 0, mended.stderr);
  assert.match(mended.stdout, 'the catalog of s1 was damaged\n  lists 3 packages');
  assert.is((await runCommand(['versions', '--from', 'staging'], box.path)).exitCode, 0);
  assert.is((await runCommand(['reindex'], box.path)).exitCode, 64);
});

test('a dry run of a promotion to a new folder shows it, and does not make the folder', async ({ signal }) => {
  await using box = await staged(signal);
  const words = ['promote', '--from', 'staging', '--to', 'new/dist', '--dry-run'];
  const { exitCode, stdout, stderr } = await runCommand(words, box.path);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, 'rook 1.0.4-14.2.21');
  assert.ok(!(await readdir(box.path)).includes('new'));
});

for (const [title, path, said] of [
  [
    'a web server without a release',
    '',
    /it is that of the folder in which .* VERSION of a store, or URL\/dist of curlew serve/,
  ],
  [
    'a page in the place of VERSION',
    '/pages',
    /VERSION does not contain a release string\n.*the folder in which .* VERSION/,
  ],
  [
    'a bundle',
    '/b.tar.gz',
    /it is the address of a file: curlew pull \S*\/b\.tar\.gz .*, and curlew install --bundle FILE/,
  ],
] as const) {
  test(`${title} in the place of a store on a web server is answered with what to give, not with publish`, async () => {
    await using box = await tree({ 'page/b.tar.gz': '', 'page/pages/VERSION': '<html>' });
    await using server = await serveFolder(box.at('page'));
    const words = ['versions', '--from', server.url + path, '--allow-http', '127.0.0.1'];
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.ok(exitCode !== 0);
    assert.match(stderr, said);
    assert.not.match(stderr, /publish|write the name/);
  });
}

test('a damaged catalog on a web server is not proposed to be rebuilt there', async () => {
  await using box = await tree({ 'dist/VERSION': 'v1\n', 'dist/v1/index.json': '{' });
  await using server = await serveFolder(box.at('dist'));
  const { stderr } = await runCommand(['versions', '--from', server.url, '--allow-http', '127.0.0.1'], box.path);
  assert.match(
    stderr,
    'curlew reindex STORE --release v1, where STORE is the folder or the S3 address that the web server serves',
  );
});

test.run();
