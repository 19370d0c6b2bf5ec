import { digestOf } from '../../../src/core/digest.ts';
import { findImageRuntime, runtimeOrder } from '../../../src/runtime/images/find-runtime.ts';
import * as assert from '../../support/assert.ts';
import { NODE_PLATFORM } from '../../support/image-packages.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, trace, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('which container runtime');

const signal = new AbortController().signal;

test('docker comes first only where an add-on installs it, and no other one containerd', () => {
  const order = (...names: readonly string[]): readonly string[] =>
    runtimeOrder(names.map((name) => ({ ref: { name } })));
  assert.equal(order(), ['containerd', 'docker']);
  assert.equal(order('weave', 'docker'), ['docker', 'containerd']);
  assert.equal(order('docker', 'containerd'), ['containerd', 'docker']);
});

test('a program that is there is not enough: its daemon has to answer', async () => {
  const fail = '#!/bin/sh\necho "Cannot connect" >&2\nexit 1\n';
  await using box = await tree({ 'no/docker': fail, 'no/ctr': fail, 'yes/docker': '#!/bin/sh\necho 28.2.2\n' });
  const env = (folder: string): Readonly<Record<string, string>> => ({
    PATH: `${box.at(folder)}:/usr/bin:/bin`,
    CONTAINERD_ADDRESS: box.at('no.sock'),
  });
  assert.is(await findImageRuntime({ env: env('no'), signal }), undefined);
  assert.is((await findImageRuntime({ env: env('yes'), signal }))?.name, 'docker');
  assert.is(await findImageRuntime({ env: env('yes'), order: ['containerd'], signal }), undefined);
});

test('without a runtime, an install with images ends before its first hook, unless images are skipped', async () => {
  await using box = await tree();
  const images = [{ id: 'web', reference: 'example.com/web:1', digest: digestOf('web'), platform: NODE_PLATFORM }];
  const packages = await packagesOf(bundleOf([{ ...tracer('web'), extra: { images } }]));
  const env = {
    PATH: '/usr/bin:/bin',
    TRACE: box.at('trace'),
    CONTAINERD_ADDRESS: box.at('no.sock'),
    DOCKER_HOST: `unix://${box.at('no.sock')}`,
  };
  const error = await assert.rejectsWith(
    run(box, packages, { env, skipImages: undefined }),
    'IMAGE_LOAD_FAILED',
    /no container runtime responds/,
  );
  assert.match(error.hint ?? '', '--skip-images');
  assert.equal(await trace(box), []);
  const { addons, images: loads } = await run(box, packages, { env, skipImages: 'requested' });
  assert.equal([addons[0]?.outcome, loads.skipped], ['installed', 'requested']);
});

test.run();
