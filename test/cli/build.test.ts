/** `curlew build` and `curlew publish`: which add-ons become packages, and where these are put. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { ERROR_CODES } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('cli/build');

test('packages are put beside the folder addons, from wherever a build starts', async () => {
  await using box = await tree(addon('web', 'asset page ./page.html\n', { 'page.html': 'hello' }));
  for (const cwd of ['addons/web/1.0', 'addons/web', '.']) {
    const words = cwd === '.' ? [] : ['.'];
    const { exitCode, stdout, stderr } = await runCommand(['build', ...words], box.at(cwd), { HOME: box.at('home') });
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, `packages are in ${box.at('out')}`);
  }
  assert.equal((await readdir(box.at('addons/web/1.0'))).toSorted(), ['Manifest', 'install.sh', 'page.html']);
});

test('a cache that cannot be created is named with the option for another one', async () => {
  await using box = await tree({ ...addon('web', ''), cache: 'a file' });
  const env = { HOME: box.at('home'), XDG_CACHE_HOME: box.at('cache') };
  const { exitCode, stderr } = await runCommand(['build'], box.path, env);
  assert.is(exitCode, 25, stderr);
  assert.match(stderr, /cannot create the folder for the cache .*cache is not a folder\n[^]*--cache DIR/);
});

test('of several repositories, packages are put below the current folder', async () => {
  const files = Object.entries(addon('web', '')).map(([path, data]) => [`a/${path}`, data] as const);
  const more = Object.entries(addon('db', '')).map(([path, data]) => [`b/${path}`, data] as const);
  await using box = await tree(Object.fromEntries([...files, ...more]));
  const { exitCode, stderr } = await runCommand(['build', 'a', 'b'], box.path, { HOME: box.at('home') });
  assert.is(exitCode, 0, stderr);
  assert.equal((await readdir(box.at('out'))).filter((name) => name.endsWith('.gz')).toSorted(), [
    'db-1.0.tar.gz',
    'web-1.0.tar.gz',
  ]);
});

test('no package is put into an add-on, nor taken from one', async () => {
  await using box = await tree(addon('web', ''));
  for (const out of ['addons/web/1.0', 'addons/web/1.0/out/x']) {
    const inside = await runCommand(['build', '-o', out], box.path, { HOME: box.at('home') });
    assert.is(inside.exitCode, 64);
    assert.match(inside.stderr, /--out .* is inside the add-on .*addons\/web\/1\.0/);
  }
  await mkdir(box.at('addons/web/1.0/out'));
  await writeFile(box.at('addons/web/1.0/out/web-1.0.tar.gz'), 'a package');
  const packed = await runCommand(['build'], box.path, { HOME: box.at('home') });
  assert.is(packed.exitCode, 10);
  assert.match(packed.stderr, /addons\/web\/1\.0\/out\/web-1\.0\.tar\.gz.*this is a package of this add-on/);
});

for (const [title, script, rule] of [
  ['that bash cannot parse', 'web() { if; }\n', /install\/syntax/],
  ['that begins with a byte order mark', '\u{FEFF}#!/bin/bash\nweb() { :; }\n', /install\/byte-order-mark/],
  ['with hooks but without the one that installs', 'web_join() { :; }\n', /hook\/no-install/],
] as const) {
  test(`neither build nor publish takes an install.sh ${title}`, async () => {
    await using box = await tree(addon('web', '', { 'install.sh': script }));
    for (const words of [['build'], ['build', '--dry-run'], ['publish', '--to', 'store']]) {
      const { exitCode, stderr } = await runCommand(words, box.path, { HOME: box.at('home') });
      assert.is(exitCode, 10, words.join(' '));
      assert.match(stderr, rule);
    }
    assert.equal((await readdir(box.path)).toSorted(), ['addons']);
  });
}

test('a saved plan is refused for what lint calls an error, as the build that made it would be', async () => {
  await using box = await tree(addon('web', '', { 'deploy.yaml': 'a: 1\n' }));
  const home = { HOME: box.at('home') };
  const { stdout } = await runCommand(['build', '--dry-run'], box.path, home);
  await writeFile(box.at('plan.json'), stdout);
  const build = ['build', '--from-plan', 'plan.json'];
  for (const [file, text, rule] of [
    ['install.sh', 'web() { if; }\n', 'install/syntax'],
    ['deploy.yaml', 'a: [1\n', 'yaml/syntax'],
  ] as const) {
    await writeFile(box.at('addons/web/1.0', file), text);
    const { exitCode, stderr } = await runCommand(build, box.path, home);
    assert.equal(
      [exitCode, stderr.includes(`addons/web/1.0/${file}`), stderr.includes(rule)],
      [10, true, true],
      stderr,
    );
    await writeFile(box.at('addons/web/1.0', file), file === 'install.sh' ? 'web() { :; }\n' : 'a: 1\n');
  }
  const { exitCode, stderr } = await runCommand(build, box.path, home);
  assert.is(exitCode, 0, stderr);
});

test('a package may have no hook, and need what several others do', async () => {
  const box = await tree({
    ...addon('steps', '', { 'install.sh': 'steps_of_an_upgrade() { :; }\n' }),
    'addons/steps/categories.json': '{"requires":["Container Runtime"]}',
  });
  await using _ = box;
  const { exitCode, stderr } = await runCommand(['build'], box.path, { HOME: box.at('home') });
  assert.is(exitCode, 0, stderr);
});

test('outdated has the status of what could not be compared, and shows the rest', async () => {
  await using web = await serveFiles({});
  await using box = await tree({ ...addon('a', `asset f ${web.url}/f\n`), ...addon('b', '') });
  const lock = { format: 1, images: [], assets: [], hostPackages: [], containerBuilds: [] };
  for (const name of ['a', 'b'])
    await writeFile(box.at('addons', name, '1.0/Manifest.lock'), `${JSON.stringify(lock)}\n`);
  const { exitCode, stdout } = await runCommand(['outdated'], box.path, { HOME: box.at('home') });
  assert.is(exitCode, ERROR_CODES.NOT_FOUND, stdout);
  assert.match(stdout, `a 1.0: cannot fetch asset f: ${web.url}/f returned 404`);
  assert.match(stdout, 'b 1.0: matches its committed lock');
});

test.run();
