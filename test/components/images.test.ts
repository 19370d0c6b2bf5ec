/** Images of a package into a real containerd and a real Docker engine. Needs root. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import type { PackageImage } from '../../src/core/package.ts';
import { addonRef } from '../../src/core/ref.ts';
import { findImageRuntime, loadImages, type ImageRuntime } from '../../src/runtime/images.ts';
import * as assert from '../support/assert.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun } from './support/programs.ts';
import { startContainerd, startDockerd } from './support/services.ts';

const test = suite('images of a package', { timeoutMs: 120_000 });

const REF = addonRef('demo', '1.0');

/** The layout of a package with two images that share a layer, as design: package format 1 has it. */
async function writeImages(box: Tree): Promise<readonly PackageImage[]> {
  const folder = box.at('addons/demo/1.0/images');
  await mkdir(join(folder, 'blobs/sha256'), { recursive: true });
  const shared = makeLayer({ 'shared.txt': 'same' });
  const images = ['one', 'two'].map((id) => {
    return { id, reference: `registry.test/demo/${id}:1.0`, image: makeImage([shared, makeLayer({ [id]: id })]) };
  });
  for (const { image } of images) {
    for (const { digest, data } of [image.config, image.manifest, ...image.layers]) {
      await writeFile(join(folder, 'blobs/sha256', hexOf(digest)), data);
    }
  }
  const manifests = images.map(({ reference, image }) => ({
    mediaType: image.manifestType,
    digest: image.manifest.digest,
    size: image.manifest.data.byteLength,
    annotations: { 'io.containerd.image.name': reference, 'org.opencontainers.image.ref.name': reference },
  }));
  const docker = images.map(({ reference, image }) => ({
    Config: `blobs/sha256/${hexOf(image.config.digest)}`,
    RepoTags: [reference],
    Layers: image.layers.map(({ digest }) => `blobs/sha256/${hexOf(digest)}`),
  }));
  await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(docker));
  return images.map(({ id, reference, image }) => {
    return { id, reference, digest: image.manifest.digest, platform: 'linux/amd64' };
  });
}

async function loadsOnce(
  box: Tree,
  runtime: ImageRuntime | undefined,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const signal = new AbortController().signal;
  const images = await writeImages(box);
  if (runtime === undefined) throw new Error('no runtime answered');
  const request = { directory: box.path, ref: REF, addon: { images, imageFormat: 'oci' as const }, env };
  const names = images.map(({ reference }) => reference);
  assert.equal(await loadImages(runtime, request, { signal }), names);
  assert.equal(await loadImages(runtime, request, { signal }), [], 'what is there is not loaded again');
  const another = { id: 'x', reference: 'registry.test/demo/x:1', digest: digestOf('x'), platform: 'linux/amd64' };
  const lacking = { ...request, addon: { ...request.addon, images: [...images, another] } };
  await assert.rejectsWith(
    loadImages(runtime, lacking, { signal }),
    'IMAGE_LOAD_FAILED',
    /registry\.test\/demo\/x:1 is still missing/,
  );
  await writeFile(box.at('addons/demo/1.0/images/index.json'), 'damaged');
  await writeFile(box.at('addons/demo/1.0/images/manifest.json'), 'damaged');
  await assert.rejectsWith(
    loadImages(runtime, lacking, { signal }),
    'IMAGE_LOAD_FAILED',
    /load images of demo-1\.0 into/,
  );
}

const why = cannotRun('ctr', 'containerd');
if (why === undefined) {
  test('containerd gets what it lacks, once', async ({ signal }) => {
    await using box = await tree();
    await using containerd = await startContainerd(box.at('containerd'));
    const env = { PATH: process.env['PATH'] ?? '', CONTAINERD_ADDRESS: containerd.socket };
    const runtime = await findImageRuntime({ env, signal });
    assert.is(runtime?.name, 'containerd');
    await loadsOnce(box, runtime, env);
  });
} else {
  test.skip('containerd', why);
}

const whyDocker = cannotRun('dockerd', 'docker');
if (whyDocker === undefined) {
  test('docker gets what it lacks, once', async ({ signal }) => {
    await using box = await tree();
    await using docker = await startDockerd(box.at('docker'));
    const env = {
      PATH: `/usr/bin:${process.env['PATH'] ?? ''}`,
      CONTAINERD_ADDRESS: '/nowhere.sock',
      DOCKER_HOST: `unix://${docker.socket}`,
    };
    const runtime = await findImageRuntime({ env, signal });
    assert.is(runtime?.name, 'docker');
    await loadsOnce(box, runtime, env);
  });
} else {
  test.skip('docker', whyDocker);
}

test('a machine where none answers has no runtime', async ({ signal }) => {
  const env = {
    PATH: process.env['PATH'] ?? '',
    CONTAINERD_ADDRESS: '/nowhere.sock',
    DOCKER_HOST: 'unix:///nowhere.sock',
  };
  assert.is(await findImageRuntime({ env, signal }), undefined);
  assert.is(await findImageRuntime({ env: { PATH: '/nowhere' }, signal }), undefined);
});

test.run();
