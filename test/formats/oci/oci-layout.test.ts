import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { planDockerArchive } from '../../../src/formats/oci/docker-archive.ts';
import type { ResolvedImage } from '../../../src/formats/oci/image.ts';
import { formatImageLayout } from '../../../src/formats/oci/oci-layout.ts';
import * as assert from '../../support/assert.ts';
import { makeImage, makeLayer, type Image } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';

const test = suite('registry/oci-layout');
const SHARED = makeLayer({ shared: 'x' });
const ONE = makeImage([SHARED, makeLayer({ one: '1' }, 'oci', 'zstd'), SHARED], 'oci', 'one');
const TWO = makeImage([SHARED, makeLayer({ two: '2' }, 'oci', 'none')], 'oci', 'two');

function resolved(image: Image, names: readonly string[]): ResolvedImage {
  const { digest, data } = image.manifest;
  const config = { mediaType: 'x', digest: image.config.digest, size: image.config.data.byteLength };
  return {
    reference: names[0] ?? '',
    names,
    resolved: digest,
    digest,
    mediaType: image.manifestType,
    manifest: data,
    config: { descriptor: config, data: image.config.data },
    layers: image.layers.map((layer) => ({
      mediaType: layer.mediaType,
      digest: layer.digest,
      size: layer.data.byteLength,
    })),
    platform: 'linux/amd64',
    fetch: async () => undefined,
  };
}

const PINNED = `docker.io/a/one@${digestOf('an index')}`;
const IMAGES = [
  { id: 'two', image: resolved(TWO, ['docker.io/a/two:2']) },
  { id: 'one', image: resolved(ONE, ['docker.io/a/one:1', PINNED]) },
];

function textOf(images: typeof IMAGES, path: string): string {
  const file = formatImageLayout(images).files.find((item) => item.path === path);
  return Buffer.from(file?.data ?? '').toString();
}

test('every name has its descriptor with both annotations, in order, as the registry has the manifest', () => {
  const index = JSON.parse(textOf(IMAGES, 'index.json')) as { manifests: Record<string, unknown>[] };
  assert.equal(
    index.manifests.map(({ digest, annotations }) => [digest, annotations]),
    [
      ['docker.io/a/one:1', ONE],
      [PINNED, ONE],
      ['docker.io/a/two:2', TWO],
    ].map(([name, image]) => [
      (image as Image).manifest.digest,
      { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
    ]),
  );
  assert.is(textOf(IMAGES, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
});

test('docker is told of tags and of layers by their blobs', () => {
  const [one, two] = JSON.parse(textOf(IMAGES, 'manifest.json')) as Record<string, unknown>[];
  assert.equal(one?.['RepoTags'], ['docker.io/a/one:1']);
  assert.equal(
    two?.['Layers'],
    TWO.layers.map(({ digest }) => `blobs/sha256/${hexOf(digest)}`),
  );
});

test('a blob is there once however many images use it, and everything is sorted', () => {
  const { files, blobs } = formatImageLayout(IMAGES);
  assert.is(blobs.length, 3);
  for (const list of [files, blobs]) {
    const paths = list.map(({ path }) => path);
    assert.equal(paths, [...new Set(paths)].toSorted());
  }
});

test('the order of images does not matter', () => {
  const bytes = (images: typeof IMAGES): string => JSON.stringify(formatImageLayout(images).files);
  assert.is(bytes(IMAGES), bytes(IMAGES.toReversed()));
});

test('one name for two images, and one digest of two sizes, are refused', () => {
  const clash = [
    { id: 'one', image: resolved(ONE, ['a/b:1']) },
    { id: 'two', image: resolved(TWO, ['a/b:1']) },
  ];
  assert.throwsWith(() => formatImageLayout(clash), 'IMAGE_INVALID', /images one and two are different/);
  const lie = resolved(TWO, ['a/c:1']);
  const sizes = [
    { id: 'one', image: resolved(ONE, ['a/b:1']) },
    { id: 'two', image: { ...lie, layers: lie.layers.map((layer) => ({ ...layer, size: 1 })) } },
  ];
  assert.throwsWith(() => formatImageLayout(sizes), 'IMAGE_INVALID', /different sizes/);
});

test("docker's form: manifest first, then config and each layer once, named by what it is", () => {
  const files = planDockerArchive(resolved(ONE, ['docker.io/a/one:1', PINNED]));
  assert.equal(
    files.map(({ path }) => path),
    [
      'manifest.json',
      `${hexOf(ONE.config.digest)}.json`,
      `${hexOf(SHARED.digest)}.tar.gz`,
      `${hexOf(ONE.layers[1]?.digest ?? digestOf(''))}.tar.zst`,
    ],
  );
  const [first] = files;
  const text = first?.content.kind === 'data' ? Buffer.from(first.content.data).toString() : '';
  const [row] = JSON.parse(text) as { RepoTags: string[]; Layers: string[] }[];
  assert.equal(row?.RepoTags, ['docker.io/a/one:1']);
  assert.is(row?.Layers.length, 3);
});

test("docker's form needs a tag", () => {
  assert.throwsWith(() => planDockerArchive(resolved(ONE, [PINNED])), 'UNSUPPORTED', /requires a tag/);
});

test.run();
