import { imageRoot, tomlRoot } from '../../../src/runtime/host/image-root.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/image-root');

for (const [title, text, expected] of [
  ['in double quotes', 'version = 2\nroot = "/data/c"\n[grpc]\n', '/data/c'],
  ['in single quotes, with a comment', "  root='/data/c'  # here\n", '/data/c'],
  ['in a table, where it means something else', '[plugins]\nroot = "/other"\n', undefined],
  ['with escapes, which no path needs', 'root = "/a\\u0062"\n', undefined],
  ['that is empty', 'root = ""\n', undefined],
  ['left out', '', undefined],
] as const) {
  test(`a root of containerd's configuration ${title}`, () => {
    assert.is(tomlRoot(text), expected);
  });
}

test('a runtime that answers says where it keeps images', async ({ signal }) => {
  await using box = await tree({
    'bin/docker': '#!/bin/sh\necho /data/docker\n',
    'bin/containerd': '#!/bin/sh\necho \'root = "/data/containerd"\'\n',
  });
  const env = { PATH: `${box.at('bin')}:/usr/bin:/bin` };
  assert.is(await imageRoot('docker', { env, signal }), '/data/docker');
  assert.is(await imageRoot('containerd', { env, signal }), '/data/containerd');
});

test('one that is not there yet will keep them as configured, or where it usually does', async ({ signal }) => {
  await using box = await tree({ 'config.toml': 'root = "/data/c"\n', 'bin/docker': '#!/bin/sh\necho nonsense\n' });
  const env = { PATH: box.at('bin') };
  assert.is(await imageRoot('containerd', { env, config: box.at('config.toml'), signal }), '/data/c');
  assert.is(await imageRoot('containerd', { env, config: box.at('none'), signal }), '/var/lib/containerd');
  assert.is(await imageRoot('docker', { env, signal }), '/var/lib/docker');
});

test.run();
