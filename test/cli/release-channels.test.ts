/** Channels that are published with a release: `curlew publish --channel`, and what other commands make of them. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { parseBundleJson } from '../../src/core/bundle.ts';
import { parseCatalog } from '../../src/core/catalog.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('cli/release-channels', { timeoutMs: 60_000 });

function folder(at: string, name: string): Files {
  return { [`${at}/Manifest`]: '', [`${at}/install.sh`]: `${name}() { :; }\n` };
}

const ADDONS: Files = {
  ...folder('addons/weave/2.8.1', 'weave'),
  ...folder('addons/weave/2.9.0', 'weave'),
  ...folder('addons/weave/nightly', 'weave'),
  ...folder('addons/containerd/1.7.2', 'containerd'),
  ...folder('packages/kubernetes/1.30.4', 'kubernetes'),
  ...folder('packages/kubernetes/1.31.2', 'kubernetes'),
  'addons/weave/categories.json': JSON.stringify({
    requires: ['containerd', 'CNI Plugin'],
    kubernetesVersion: { '2.8.1': '<1.31.0', '2.9.0': '>=1.30.0 <1.33.0' },
  }),
};

async function run(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(words, box.path, { HOME: box.path });
}

async function good(box: Tree, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(box, ...words);
  assert.is(exitCode, 0, `${stderr}${stdout}`);
  return stdout;
}

/** A store with the release r1 and its channels `edge` and `stable`. */
async function published(): Promise<Tree> {
  const box = await tree(ADDONS);
  const channels = ['--channel', 'stable', '--channel', 'edge'];
  const { exitCode, stderr } = await run(box, 'publish', '--to', 'store', '--release', 'r1', ...channels);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'not in the channels, because their versions are not semantic: weave nightly');
  return box;
}

const STABLE = 'store/r1/channels/stable.yaml';

test('a published channel has an entry for each version, with its range, package and requirements', async () => {
  await using box = await published();
  const { channels, addons } = parseCatalog(await readFile(box.at('store/r1/index.json'), 'utf8'), 'index.json');
  assert.equal(channels, ['edge', 'stable']);
  const weave = addons.find(({ name }) => name === 'weave')?.versions.find(({ version }) => version === '2.8.1');
  const text = await readFile(box.at(STABLE), 'utf8');
  const entry = [
    '    - name: "weave"',
    '      version: "2.8.1"',
    '      kubernetesVersion: "<1.31.0"',
    '      package: "weave-2.8.1.tar.gz"',
    `      hash: "${weave?.packages.amd64?.digest}"`,
    '      requires: [{"name":"containerd"}]',
  ];
  assert.match(text, entry.join('\n'));
  assert.not.match(text, 'nightly');
  assert.is(await readFile(box.at('store/channels/stable.yaml'), 'utf8'), text);
  assert.match(await good(box, 'inspect', 'store/r1/weave-2.9.0.tar.gz'), 'for      Kubernetes >=1.30.0 <1.33.0');
});

test('check, explain and plan read a published channel', async () => {
  await using box = await published();
  const checked = await good(box, 'channel', 'check', STABLE, 'store/channels/edge.yaml');
  assert.match(checked, / 0 errors, /);
  const explained = await good(box, 'channel', 'explain', 'weave', STABLE, '--kubernetes', 'v1.30.4');
  assert.match(explained, /weave 2\.9\.0\n {2}applies package weave-2\.9\.0\.tar\.gz\n {2}requires containerd/);
  const plan = [
    'channel',
    'plan',
    STABLE,
    '--from',
    'v1.30.4',
    '--to',
    'v1.31.x',
    '--installed',
    'weave=2.8.1',
    '--installed',
    'containerd=1.7.2',
  ];
  const steps = await good(box, ...plan);
  assert.match(steps, /1 +weave 2\.9\.0 .*\n2 +Kubernetes v1\.31\.2/);
});

test('the channels of the previous release are published again, unless others are named', async () => {
  await using box = await published();
  await writeFile(box.at('addons/weave/2.9.0/more.yaml'), 'a: 1\n');
  const channelsOf = async (release: string): Promise<unknown> =>
    parseCatalog(await readFile(box.at(`store/${release}/index.json`), 'utf8'), release).channels;
  const dry = await good(box, 'publish', '--to', 'store', '--release', 'r2', '--dry-run');
  assert.match(dry, 'r2 would be created, with the channels edge, stable; ');
  assert.match(
    await good(box, 'publish', '--to', 'store', '--release', 'r2'),
    '(before: r1), with the channels edge, stable; ',
  );
  assert.equal(await channelsOf('r2'), ['edge', 'stable']);
  assert.is(
    await readFile(box.at('store/channels/stable.yaml'), 'utf8'),
    await readFile(box.at('store/r2/channels/stable.yaml'), 'utf8'),
  );
  await good(box, 'publish', '--to', 'store', '--release', 'r3', '--channel', 'stable');
  assert.equal(await channelsOf('r3'), ['stable']);
  const other = await run(box, 'publish', '--to', 'store', '--release', 'r3', '--channel', 'beta');
  assert.match(other.stderr, 'r3 was published with different content');
  assert.is((await run(box, 'publish', '--to', 'store', '--release', 'r3')).exitCode, 0);
});

test('a name that cannot be that of a channel is refused before anything is built', async () => {
  await using box = await tree(ADDONS);
  const { exitCode, stderr } = await run(box, 'publish', '--to', 'store', '--channel', '../stable');
  assert.is(exitCode, 64);
  assert.match(stderr, '--channel: "../stable" is not the name of a channel');
});

test('promote carries the channels, prune keeps them, and reindex restores them', async () => {
  await using box = await published();
  const text = await readFile(box.at(STABLE), 'utf8');
  await good(box, 'promote', '--from', 'store@r1', '--to', 'dist@v1');
  assert.is(await readFile(box.at('dist/v1/channels/stable.yaml'), 'utf8'), text);
  assert.is(await readFile(box.at('dist/channels/stable.yaml'), 'utf8'), text);
  await good(box, 'publish', '--to', 'store', '--release', 'r2');
  assert.match(await good(box, 'prune', '--from', 'store', '--keep', '1'), '1 release kept');
  assert.is(await readFile(box.at('store/channels/stable.yaml'), 'utf8'), text);
  await rm(box.at('dist/v1/channels/stable.yaml'));
  await rm(box.at('dist/channels'), { recursive: true });
  await good(box, 'reindex', 'dist');
  assert.is(await readFile(box.at('dist/v1/channels/stable.yaml'), 'utf8'), text);
  assert.is(await readFile(box.at('dist/channels/edge.yaml'), 'utf8'), text.replace('"stable"', '"edge"'));
  const catalog = await readFile(box.at('dist/v1/index.json'), 'utf8');
  await rm(box.at('dist/v1/index.json'));
  await good(box, 'reindex', 'dist');
  assert.is(await readFile(box.at('dist/v1/index.json'), 'utf8'), catalog);
});

const SPEC = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata: {name: demo}
spec:
  kubernetes: {version: 1.30.x}
  weave: {version: channel:stable}
`;

test('a spec takes a version from a channel: it is pinned in the bundle, with the reason', async () => {
  await using box = await published();
  await writeFile(box.at('spec.yaml'), SPEC);
  const reason = 'channel stable for Kubernetes 1.30.4';
  assert.match(await good(box, 'installer', 'validate', 'spec.yaml'), /valid/);
  const resolved = await good(box, 'installer', 'resolve', 'spec.yaml', '--from', 'store');
  assert.match(resolved, new RegExp(`weave .*2\\.9\\.0.*${reason}`));
  const made = await good(box, 'bundle', 'spec.yaml', '--from', 'store', '-o', 'b.tar.gz');
  assert.match(made, `channel:stable: ${reason}`);
  const shown = await good(box, 'inspect', 'b.tar.gz', '--json');
  assert.match(shown, '"name":"weave"');
  await mkdir(box.at('b'));
  await promisify(execFile)('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.at('b')]);
  const { packages } = parseBundleJson(await readFile(box.at('b/bundle.json'), 'utf8'), 'bundle.json');
  assert.equal(
    packages.map(({ name, version, because }) => [name, version, because]),
    [
      ['kubernetes', '1.30.4', undefined],
      ['weave', '2.9.0', reason],
    ],
  );
  const again = await good(box, 'installer', 'resolve', 'spec.yaml', '--bundle', 'b.tar.gz');
  assert.match(again, new RegExp(`weave .*2\\.9\\.0.*${reason}`));
});

test('the signed catalog decides, not the file of the channel', async () => {
  await using box = await tree({ ...ADDONS, 'spec.yaml': SPEC });
  await good(box, 'keygen', 'our');
  const signed = ['--release', 'r1', '--sign', 'our.key'];
  await good(box, 'publish', '--to', 'store', '--channel', 'stable', ...signed);
  const own = await readFile(box.at(STABLE), 'utf8');
  await writeFile(box.at(STABLE), own.replace('>=1.30.0 <1.33.0', '>=1.33.0'));
  const bundle = ['bundle', 'spec.yaml', '--from', 'store', '--key', 'our.pub', '-o'];
  assert.match(await good(box, ...bundle, 'b.tar.gz'), /weave[ -]2\.9\.0/);
  await good(box, 'promote', '--from', 'store@r1', '--to', 'dist', '--key', 'our.pub');
  assert.is(await readFile(box.at('dist/r1/channels/stable.yaml'), 'utf8'), own);
  const index = await readFile(box.at('store/r1/index.json'), 'utf8');
  await writeFile(box.at('store/r1/index.json'), index.replace('>=1.30.0 <1.33.0', '>=1.33.0'));
  const { exitCode, stderr } = await run(box, ...bundle, 'c.tar.gz');
  assert.is(exitCode, 30, stderr);
});

test('a version of a channel cannot be found in a bundle that was made without it', async () => {
  await using box = await published();
  await writeFile(box.at('spec.yaml'), SPEC.replace('channel:stable', '2.8.1'));
  await good(box, 'bundle', 'spec.yaml', '--from', 'store', '-o', 'b.tar.gz');
  await writeFile(box.at('spec.yaml'), SPEC);
  const { exitCode, stderr } = await run(box, 'installer', 'resolve', 'spec.yaml', '--bundle', 'b.tar.gz');
  assert.is(exitCode, 11, stderr);
  assert.match(stderr, 'weave: channel:stable can be resolved only for a spec, in a store');
  const versions = await run(box, 'versions', 'weave@channel:stable', '--from', 'store');
  assert.match(versions.stderr, 'weave: channel:stable can be resolved only for a spec, in a store');
});

test('a release without channels is as it was', async () => {
  await using box = await tree(ADDONS);
  await good(box, 'publish', '--to', 'store', '--release', 'r1');
  assert.not.match(await readFile(box.at('store/r1/index.json'), 'utf8'), 'channels');
});

test.run();
