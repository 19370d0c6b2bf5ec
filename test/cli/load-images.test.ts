import { writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/load-images');

const NO_RUNTIME = { PATH: '/nowhere', CONTAINERD_ADDRESS: '/nowhere.sock', DOCKER_HOST: 'unix:///nowhere.sock' };

test('wrong words are told apart from folders without images', async () => {
  await using box = await tree({ 'empty/addons/demo/1.0/install.sh': '', file: '' });
  const both = await runCommand(['load-images', '--bundle', 'a', '--dir', 'b'], box.path);
  assert.is(both.exitCode, 64);
  assert.match(both.stderr, /only one of --bundle and --dir/);
  const word = await runCommand(['load-images', 'demo'], box.path);
  assert.is(word.exitCode, 64);
  assert.match(word.stderr, /unknown flag "demo"/);
  for (const [option, folder, message] of [
    ['--dir', 'empty', 'there are none'],
    ['--dir', 'nowhere', 'no such folder'],
    ['--dir', 'file', 'it is not a folder'],
    ['--install-dir', 'empty', 'there are none'],
  ] as const) {
    const { exitCode, stderr } = await runCommand(['load-images', option, folder], box.path);
    assert.is(exitCode, 14, folder);
    assert.match(stderr, `cannot find images in ${box.at(folder)}: ${message}\n`);
  }
  assert.is((await runCommand(['load-images', '--bundle', 'nowhere'], box.path)).exitCode, 14);
});

test("words of kURL's task are taken: where packages lie counts, the rest makes no difference", async () => {
  await using box = await tree({ 'node/kurl/addons/demo/1.0/addon.json': '{"format":1}' });
  const words = ['load-images', 'airgap', `kurl-install-directory=${box.at('node')}`];
  const { exitCode, stderr } = await runCommand(words, box.path, NO_RUNTIME);
  assert.is(exitCode, 16, stderr);
  assert.match(stderr, /node\/kurl\/.*addon\.json/);
});

test('a machine without a container runtime is told what to start', async () => {
  await using box = await tree();
  await writeFile(box.at('bundle.tar.gz'), bundleOf([{ name: 'demo', version: '1.0', files: { 'install.sh': '' } }]));
  const { exitCode, stderr } = await curlew(['load-images', '--bundle', 'bundle.tar.gz'], {
    cwd: box.path,
    env: NO_RUNTIME,
  });
  assert.is(exitCode, 26);
  assert.match(stderr, /neither containerd nor docker responds/);
  assert.match(stderr, /CONTAINERD_ADDRESS=/);
  const only = ['load-images', '--bundle', 'bundle.tar.gz', '--runtime'];
  assert.match((await runCommand([...only, 'docker'], box.path, NO_RUNTIME)).stderr, /docker does not respond/);
  assert.is((await runCommand([...only, 'podman'], box.path, NO_RUNTIME)).exitCode, 64);
});

test('an addon.json that cannot be believed is an error, and so is a damaged archive', async () => {
  await using box = await tree({
    'json/addons/demo/1.0/addon.json': '{"format":1}',
    'archive/addons/demo/1.0/images/app.tar.gz': 'no archive',
    // Names that no package has are not looked at.
    'archive/addons/.new-run/1.0/images/app.tar.gz': 'no archive either',
  });
  const json = await runCommand(['load-images', '--dir', 'json'], box.path, NO_RUNTIME);
  assert.is(json.exitCode, 16);
  assert.match(json.stderr, /addon\.json/);
  const archive = await runCommand(['load-images', '--dir', 'archive'], box.path, NO_RUNTIME);
  assert.is(archive.exitCode, 27);
  assert.match(archive.stderr, /demo\/1\.0: images\/app\.tar\.gz: it is truncated/);
});

test.run();
