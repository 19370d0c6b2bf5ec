import { gzipSync } from 'node:zlib';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import type { Arch } from '../../../src/core/ref.ts';
import { planDockerArchive } from '../../../src/formats/oci/docker-archive.ts';
import { openImageArchive } from '../../../src/formats/oci/image-archive.ts';
import type { ResolvedImage } from '../../../src/formats/oci/image.ts';
import { formatImageLayout } from '../../../src/formats/oci/oci-layout.ts';
import * as assert from '../../support/assert.ts';
import { collector } from '../../support/client.ts';
import { makeImage, makeLayer, type Image, type Layer } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { tarOf, type TarItem } from '../../support/tar-file.ts';
import { tree } from '../../support/tree.ts';

const test = suite('registry/image-archive');
const PLAIN = [makeLayer({ a: 'a' }, 'docker', 'none'), makeLayer({ b: 'b'.repeat(5000) }, 'docker', 'none')];
const IMAGE = makeImage(PLAIN, 'docker');

async function open(
  data: Uint8Array,
  signal: AbortSignal,
  arch: Arch = 'amd64',
): Promise<ResolvedImage & AsyncDisposable> {
  const files = await tree({ 'image.tar': data, 'scratch/x': '' });
  try {
    const options = { id: 'app', arch, scratch: files.at('scratch'), signal };
    return {
      ...(await openImageArchive(files.at('image.tar'), options)),
      [Symbol.asyncDispose]: files[Symbol.asyncDispose],
    };
  } catch (error) {
    await files[Symbol.asyncDispose]();
    throw error;
  }
}

function dockerItems(
  image: Image,
  tags: readonly string[],
  layerPath = (layer: Layer) => `${hexOf(layer.digest)}/layer.tar`,
): TarItem[] {
  const Config = `${hexOf(image.config.digest)}.json`;
  const manifest = [{ Config, RepoTags: tags, Layers: image.layers.map(layerPath) }];
  return [
    ...image.layers.map((layer) => ({ path: layerPath(layer), data: layer.data })),
    { path: Config, data: image.config.data },
    { path: 'manifest.json', data: JSON.stringify(manifest) },
  ];
}

function ociItems(image: Image, name: string, prefix = ''): TarItem[] {
  const { digest, data } = image.manifest;
  const annotations = { 'org.opencontainers.image.ref.name': name };
  const entry = { mediaType: image.manifestType, digest, size: data.byteLength, annotations };
  return [
    { path: `${prefix}oci-layout`, data: '{"imageLayoutVersion":"1.0.0"}' },
    { path: `${prefix}index.json`, data: JSON.stringify({ schemaVersion: 2, manifests: [entry] }) },
    ...[image.manifest, image.config, ...image.layers].map((blob) => ({
      path: `${prefix}blobs/sha256/${hexOf(blob.digest)}`,
      data: blob.data,
    })),
  ];
}

async function fetched(image: ResolvedImage, index: number, signal: AbortSignal, from = 0): Promise<Buffer> {
  const layer = image.layers[index];
  if (layer === undefined) throw new Error(`no layer ${index}`);
  const { write, body } = collector();
  await image.fetch(layer, { from, write, signal });
  return body();
}

for (const pack of ['plain', 'gzip'] as const) {
  test(`an archive of docker's form, ${pack}, becomes an image with a manifest of schema 2`, async ({ signal }) => {
    const tar = tarOf(dockerItems(IMAGE, ['team/app:1', 'team/app:latest']));
    await using image = await open(pack === 'gzip' ? gzipSync(tar) : tar, signal);
    assert.is(image.reference, 'docker.io/team/app:1');
    assert.equal(image.names, ['docker.io/team/app:1', 'docker.io/team/app:latest']);
    assert.is(image.digest, digestOf(image.manifest));
    assert.ok(Buffer.from(image.config.data).equals(IMAGE.config.data));
    for (const [index, layer] of PLAIN.entries()) {
      assert.is(image.layers[index]?.digest, layer.diffId);
      assert.ok((await fetched(image, index, signal)).equals(Buffer.from(layer.data)));
      assert.ok((await fetched(image, index, signal, 700)).equals(Buffer.from(layer.data).subarray(700)));
    }
  });
}

test('packed layers keep their bytes, links between layers are followed', async ({ signal }) => {
  const packed = makeImage([makeLayer({ a: 'a' }, 'docker'), makeLayer({ a: 'a' }, 'docker')], 'docker');
  const [one] = packed.layers;
  if (one === undefined) return assert.unreachable();
  const items = dockerItems(packed, ['app:1'], () => 'first/layer.tar').slice(1);
  const manifest = [
    {
      Config: `${hexOf(packed.config.digest)}.json`,
      RepoTags: ['app:1'],
      Layers: ['first/layer.tar', 'second/layer.tar'],
    },
  ];
  const all: TarItem[] = [
    ...items.slice(0, -1),
    { path: 'manifest.json', data: JSON.stringify(manifest) },
    { path: 'second/', type: 'Directory' },
    { path: 'second/layer.tar', type: 'SymbolicLink', linkTo: '../first/layer.tar' },
  ];
  await using image = await open(tarOf(all), signal);
  assert.equal(
    image.layers.map(({ digest, mediaType }) => [digest, mediaType]),
    [one, one].map(({ digest }) => [digest, 'application/vnd.docker.image.rootfs.diff.tar.gzip']),
  );
});

for (const prefix of ['', './']) {
  test(`an OCI archive with paths like "${prefix}index.json" is taken as it is`, async ({ signal }) => {
    const made = makeImage([makeLayer({ a: 'a' }), makeLayer({ z: 'z' }, 'oci', 'zstd')]);
    await using image = await open(tarOf(ociItems(made, 'quay.io/team/app:1', prefix)), signal);
    assert.is(image.digest, made.manifest.digest);
    assert.is(image.reference, 'quay.io/team/app:1');
    assert.ok((await fetched(image, 1, signal)).equals(Buffer.from(made.layers[1]?.data ?? '')));
  });
}

test("layers with zstd in docker's form get the types of OCI, which every containerd unpacks", async ({ signal }) => {
  const layers = (['none', 'gzip', 'zstd'] as const).map((packing) => makeLayer({ [packing]: 'x' }, 'docker', packing));
  await using image = await open(tarOf(dockerItems(makeImage(layers, 'docker'), ['team/app:1'])), signal);
  const type = 'application/vnd.oci.image.layer.v1.tar';
  assert.is(image.mediaType, 'application/vnd.oci.image.manifest.v1+json');
  assert.equal(
    image.layers.map(({ mediaType }) => mediaType),
    [type, `${type}+gzip`, `${type}+zstd`],
  );
  const manifest = JSON.parse(Buffer.from(image.manifest).toString()) as Readonly<Record<string, unknown>>;
  assert.is(manifest['mediaType'], image.mediaType);
  assert.equal(manifest['config'], {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: image.config.descriptor.digest,
    size: image.config.data.byteLength,
  });
});

test('what we plan in either form, we can read again', async ({ signal }) => {
  await using image = await open(tarOf(dockerItems(IMAGE, ['team/app:1'])), signal);
  const layout = formatImageLayout([{ id: 'app', image }]);
  const blobs = await Promise.all(
    layout.blobs.map(async ({ path, descriptor }) => ({
      path,
      data: await fetched(
        image,
        image.layers.findIndex(({ digest }) => digest === descriptor.digest),
        signal,
      ),
    })),
  );
  await using again = await open(tarOf([...layout.files, ...blobs]), signal);
  assert.is(again.digest, image.digest);
  const planned = planDockerArchive(image).map(({ path, content }) =>
    content.kind === 'data'
      ? { path, data: content.data }
      : { path, data: PLAIN.find(({ digest }) => digest === content.descriptor.digest)?.data ?? '' },
  );
  await using third = await open(tarOf(planned), signal);
  assert.is(third.digest, image.digest);
});

const GOOD = dockerItems(IMAGE, ['app:1']);
const [SOME] = PLAIN;
const hostile: readonly (readonly [
  what: string,
  data: () => Uint8Array,
  code: 'IMAGE_INVALID' | 'DIGEST_MISMATCH' | 'UNSUPPORTED',
])[] = [
  ['nothing in it', () => Buffer.alloc(0), 'IMAGE_INVALID'],
  ['no tar', () => Buffer.alloc(5000, 'x'), 'IMAGE_INVALID'],
  ['only zeros', () => Buffer.alloc(10_240), 'IMAGE_INVALID'],
  ['other files', () => tarOf([{ path: 'a', data: 'a' }]), 'IMAGE_INVALID'],
  ['a path that climbs out', () => tarOf([...GOOD, { path: '../x', data: '' }]), 'IMAGE_INVALID'],
  ['an absolute path', () => tarOf([...GOOD, { path: '/etc/passwd', data: '' }]), 'IMAGE_INVALID'],
  ['a device', () => tarOf([...GOOD, { path: 'dev', type: 'CharacterDevice' }]), 'IMAGE_INVALID'],
  ['a pipe', () => tarOf([...GOOD, { path: 'pipe', type: 'FIFO' }]), 'IMAGE_INVALID'],
  ['two manifests', () => tarOf([...GOOD, { path: 'manifest.json', data: '[]' }]), 'IMAGE_INVALID'],
  ['its end cut off', () => tarOf(GOOD).subarray(0, 3000), 'IMAGE_INVALID'],
  ['a size beyond its end', () => tarOf([{ path: 'a', size: 1e9 }, ...GOOD]), 'IMAGE_INVALID'],
  ['a manifest of 5 MB', () => tarOf([{ path: 'manifest.json', data: Buffer.alloc(5_000_000, ' ') }]), 'IMAGE_INVALID'],
  ['a manifest that is no list', () => tarOf([{ path: 'manifest.json', data: '{}' }]), 'IMAGE_INVALID'],
  ['an image without a name', () => tarOf(dockerItems(IMAGE, [])), 'IMAGE_INVALID'],
  ['a name that is none', () => tarOf(dockerItems(IMAGE, ['../../x:y z'])), 'IMAGE_INVALID'],
  ['an image under a bare tag', () => tarOf(ociItems(makeImage(PLAIN, 'docker'), 'latest')), 'IMAGE_INVALID'],
  ['a missing layer', () => tarOf(GOOD.slice(1)), 'IMAGE_INVALID'],
  [
    'a layer that links out of it',
    () =>
      tarOf([
        { path: `${hexOf(SOME?.digest ?? digestOf(''))}/layer.tar`, type: 'SymbolicLink', linkTo: '/etc/passwd' },
        ...GOOD.slice(1),
      ]),
    'IMAGE_INVALID',
  ],
  [
    'links in a circle',
    () =>
      tarOf([
        { path: 'manifest.json', type: 'SymbolicLink', linkTo: 'b' },
        { path: 'b', type: 'SymbolicLink', linkTo: 'manifest.json' },
        { path: 'c', data: 'x' },
      ]),
    'IMAGE_INVALID',
  ],
  [
    'another config than its name says',
    () =>
      tarOf(
        GOOD.map((item) =>
          item.path.endsWith('.json') && item.path !== 'manifest.json'
            ? { ...item, data: Buffer.concat([Buffer.from(item.data ?? ''), Buffer.from(' ')]) }
            : item,
        ),
      ),
    'DIGEST_MISMATCH',
  ],
  [
    'a manifest blob with another content',
    () =>
      tarOf(
        ociItems(IMAGE, 'a/b:1').map((item) =>
          item.path.endsWith(hexOf(IMAGE.manifest.digest))
            ? { ...item, data: Buffer.from(item.data ?? '').fill(0x20) }
            : item,
        ),
      ),
    'DIGEST_MISMATCH',
  ],
  ['another platform', () => tarOf(dockerItems(makeImage(PLAIN, 'docker', 'x', 'arm64'), ['app:1'])), 'UNSUPPORTED'],
  ['a gzip bomb', () => gzipSync(Buffer.alloc(80 * 1024 * 1024)), 'IMAGE_INVALID'],
  ['damaged gzip', () => gzipSync(tarOf(GOOD)).subarray(0, 400), 'IMAGE_INVALID'],
];
for (const [what, data, code] of hostile) {
  test(`an archive with ${what} is ${code}`, async ({ signal }) => {
    await assert.rejectsWith(open(data(), signal), code, /^image app: archive /);
  });
}

test('two images in one archive are refused, and a file that is not there is FILE_UNUSABLE', async ({ signal }) => {
  const [config, manifest] = GOOD.slice(-2);
  const row = (JSON.parse(String(manifest?.data)) as unknown[])[0];
  const two = [
    ...GOOD.slice(0, -2),
    config ?? { path: 'x' },
    { path: 'manifest.json', data: JSON.stringify([row, row]) },
  ];
  const error = await assert.rejectsWith(open(tarOf(two), signal), 'IMAGE_INVALID', /2 images in it/);
  assert.match(error.hint ?? '', /into a separate archive/);
  const options = { id: 'app', arch: 'amd64', scratch: '/nonexistent', signal } as const;
  await assert.rejectsWith(openImageArchive('/nonexistent/x.tar', options), 'FILE_UNUSABLE');
});

test.run();
