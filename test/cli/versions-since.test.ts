/** What `curlew versions --since` says about two releases. */
import type { Versions } from '../../src/app/versions.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { writePackage } from '../support/packages.ts';
import { publishAs } from '../support/releases.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/versions-since');

const pause = { id: 'p', reference: 'docker.io/library/pause:3.10', digest: digestOf('p'), platform: 'linux/amd64' };

/** A store whose release r2 has another version of flannel, other content in web, longhorn, and packages for arm64. */
async function scene(signal: AbortSignal): Promise<Tree> {
  const box = await tree();
  const store = await publishTestPackages(
    box,
    [
      { name: 'flannel', version: '0.26.1', files: [{ path: 'x', data: 'old' }], extra: { images: [pause] } },
      { name: 'web', version: '1.0.0', files: [{ path: 'x', data: 'web' }] },
      { name: 'same', version: '1.0.0', files: [{ path: 'x', data: 'same' }] },
    ],
    signal,
  );
  const files = [];
  for (const [name, version, arch] of [
    ['flannel', '0.27.0', 'amd64'],
    ['web', '1.0.0', 'amd64'],
    ['longhorn', '1.7.2', 'amd64'],
    ['longhorn', '1.7.2', 'arm64'],
  ] as const) {
    const path = box.at(`${name}-${arch}.tar.gz`);
    files.push({ path, addon: await writePackage(path, name, version, [{ path: 'x', data: 'new' }], { arch }) });
  }
  await publishAs(store, 'r2', files, signal);
  return box;
}

async function said(box: Tree, ...words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await runCommand(['versions', '--from', 'store', ...words], box.path, { HOME: box.path });
  return stdout === '' ? stderr : stdout;
}

test('versions, images and content that differ are shown by add-on and architecture', async ({ signal }) => {
  await using box = await scene(signal);
  const lines = (await said(box, '--since', 'r1')).replaceAll(/[\d.]+ k?B/g, 'SIZE').split('\n');
  assert.equal(lines, [
    'flannel (amd64): SIZE → SIZE',
    '  the newest is 0.27.0, was 0.26.1',
    `  image ${pause.reference} is not in 0.27.0`,
    '  0.27.0 is new',
    'longhorn (amd64, arm64): SIZE',
    '  1.7.2 is new',
    'web (amd64): SIZE → SIZE',
    '  1.0.0 has other content',
    `3 add-ons changed between r1 and r2 of ${box.at('store')}`,
  ]);
  assert.match(await said(box, '--release', 'r1', '--since', 'r2'), '0.27.0 is gone');
  assert.is(await said(box, '--since', 'r2'), `no package differs between r2 and r2 of ${box.at('store')}`);
});

test('named add-ons are compared alone, also one that only one of the releases has', async ({ signal }) => {
  await using box = await scene(signal);
  assert.match(await said(box, 'web', '--since', 'r1'), /^web: .*\n {2}1\.0\.0 has other content\n1 add-on changed/);
  assert.match(await said(box, 'longhorn', '--release', 'r1', '--since', 'r2'), '  1.7.2 is gone\n1 add-on changed');
  assert.match(await said(box, 'wbe', '--since', 'r1'), 'did you mean web?');
  assert.match(await said(box, 'web@1.0.0', '--since', 'r1'), 'name add-ons without a version');
  assert.match(await said(box, '--since', 'r9'), 'release "r9" does not exist');
  const { since, changes } = JSON.parse(await said(box, 'longhorn', '--since', 'r1', '--json')) as Versions;
  assert.equal(
    [since, changes?.map(({ name, arches, lines }) => [name, arches, lines])],
    ['r1', [['longhorn', ['amd64', 'arm64'], ['1.7.2 is new']]]],
  );
});

test('with a key, both releases must be signed', async ({ signal }) => {
  await using box = await scene(signal);
  const run = async (...words: readonly string[]) => runCommand(words, box.path, { HOME: box.path });
  await run('keygen', 'our');
  await run('sign', '--store', 'store', '--release', 'r2', '--key', 'our.key');
  assert.match(await said(box, '--since', 'r1', '--key', 'our.pub'), /r1 is not signed/);
  await run('sign', '--store', 'store', '--release', 'r1', '--key', 'our.key');
  assert.match(await said(box, '--since', 'r1', '--key', 'our.pub'), /3 add-ons changed/);
});

test.run();
