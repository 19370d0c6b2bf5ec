import { readdir } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/bundles.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/bundle/verified-images');

test('bundle --verify refuses the image that verify refuses, and writes nothing', async ({ signal }) => {
  await using box = await tree({ 'installer.yaml': specOf({ web: '1.0.0' }) });
  const windows = makeImage([makeLayer({ a: 'a' })], 'oci', 'windows', 'amd64', 'windows');
  await publishImages(box, [{ name: 'web', version: '1.0.0', images: { 'a.example/web:1': windows } }], signal);
  const words = ['bundle', 'installer.yaml', '--from', 'store', '-o', 'b.tar.gz'];
  const refused = await runCommand([...words, '--verify'], box.path);
  assert.is(refused.exitCode, 27, refused.stderr);
  assert.match(refused.stderr, 'a.example/web:1 is for "windows/amd64"');
  assert.ok(!(await readdir(box.path)).includes('b.tar.gz'));
  assert.is((await runCommand(words, box.path)).exitCode, 0);
  assert.is((await runCommand(['verify', 'b.tar.gz'], box.path)).exitCode, 27);
});

test.run();
