import { gzipSync } from 'node:zlib';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import type { Arch } from '../../../src/core/ref.ts';
import { planDockerArchive } from '../../../src/formats/oci/docker-archive.ts';
import { openImageArchive } from '../../../src/formats/oci/read-image-archive.ts';
import type { ResolvedImage } from '../../../src/formats/oci/image.ts';
import { formatImageLayout } from '../../../src/formats/oci/oci-layout.ts';
import * as assert from '../../support/assert.ts';
import { collector } from '../../support/client.ts';
import { makeImage, makeIndex, makeLayer, rawZstd, type Blob, type Image, type Layer } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { tarOf, type TarItem } from '../../support/tar-file.ts';
import { tree } from '../../support/tree.ts';

const test = suite('formats/oci/read-image-archive');
const PLAIN = [makeLayer({ a: 'a' }, 'docker', 'none'), makeLayer({ b: 'b'.repeat(5000) }, 'docker', 'none')];
const IMAGE = makeImage(PLAIN, 'docker');

async function open(
  data: Uint8Array,
  signal: AbortSignal,
  given: { readonly arch?: Arch; readonly names?: readonly string[] } = {},
): Promise<ResolvedImage & AsyncDisposable> {
  const files = await tree({ 'image.tar': data, 'scratch/x': '' });
  try {
    const options = { id: 'app', arch: 'amd64', scratch: files.at('scratch'), signal, ...given } as const;
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

for (const [pack, packed] of [
  ['plain', (tar: Buffer): Buffer => tar],
  ['gzip', (tar: Buffer): Buffer => gzipSync(tar)],
  ['zstd', rawZstd],
] as const) {
  test(`an archive of docker's form, ${pack}, becomes an image with a manifest of schema 2`, async ({ signal }) => {
    const tar = tarOf(dockerItems(IMAGE, ['team/app:1', 'team/app:latest']));
    await using image = await open(packed(tar), signal);
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

/** An entry of index.json. */
function entryOf({ manifest, manifestType }: Pick<Image, 'manifest' | 'manifestType'>, more: object = {}): object {
  return { mediaType: manifestType, digest: manifest.digest, size: manifest.data.byteLength, ...more };
}

/** An OCI archive with these entries in its index.json (`null` as docker writes it) and these blobs. */
function layoutOf(manifests: readonly object[] | null, blobs: readonly Blob[]): TarItem[] {
  return [
    { path: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
    { path: 'index.json', data: JSON.stringify({ schemaVersion: 2, manifests }) },
    ...blobs.map(({ digest, data }) => ({ path: `blobs/sha256/${hexOf(digest)}`, data })),
  ];
}

function blobsOf({ manifest, config, layers }: Image): readonly Blob[] {
  return [manifest, config, ...layers];
}

function jsonBlob(value: unknown): Blob {
  const data = Buffer.from(JSON.stringify(value));
  return { digest: digestOf(data), data };
}

test('an image without a name takes that of the Manifest, which its error proposes', async ({ signal }) => {
  const made = makeImage(PLAIN);
  const byDigest = [
    ...layoutOf(null, blobsOf(made)),
    { path: 'manifest.json', data: JSON.stringify([dockerRow(made, null)]) },
  ];
  for (const items of [dockerItems(IMAGE, []), layoutOf([entryOf(made)], blobsOf(made)), byDigest]) {
    const error = await assert.rejectsWith(open(tarOf(items), signal), 'IMAGE_INVALID', /its image has no name/);
    assert.match(error.hint ?? '', 'image app FILE.tar NAME:TAG');
    await using image = await open(tarOf(items), signal, { names: ['docker.io/team/app:1'] });
    assert.is(image.reference, 'docker.io/team/app:1');
    assert.ok((await fetched(image, 1, signal)).equals(Buffer.from(PLAIN[1]?.data ?? '')));
  }
  const none = layoutOf(null, blobsOf(made));
  await assert.rejectsWith(open(tarOf(none), signal), 'IMAGE_INVALID', /index.json: it lists no image/);
});

function dockerRow(image: Image, tags: readonly string[] | null): object {
  const path = ({ digest }: Blob): string => `blobs/sha256/${hexOf(digest)}`;
  return { Config: path(image.config), RepoTags: tags, Layers: image.layers.map(path) };
}

test('signatures and SBOMs next to an image in an OCI archive are passed over, marked as such or not', async ({
  signal,
}) => {
  const made = makeImage(PLAIN);
  const empty = jsonBlob({});
  const type = (mediaType: string, { digest, data }: Blob): object => ({ mediaType, digest, size: data.byteLength });
  const spdx = jsonBlob({
    schemaVersion: 2,
    artifactType: 'application/spdx+json',
    config: type('application/vnd.oci.empty.v1+json', empty),
    layers: [type('application/spdx+json', empty)],
    subject: entryOf(made),
  });
  const signature = jsonBlob({
    schemaVersion: 2,
    config: type('application/vnd.oci.image.config.v1+json', made.config),
    layers: [type('application/vnd.dev.cosign.simplesigning.v1+json', empty)],
  });
  const old = jsonBlob({ mediaType: 'application/vnd.oci.artifact.manifest.v1+json' });
  const named = (name: string): object => ({ annotations: { 'org.opencontainers.image.ref.name': name } });
  const manifests = [
    { ...type(made.manifestType, signature), ...named(`a/b:sha256-${'0'.repeat(64)}.sig`) },
    entryOf(made, named('a/b:1')),
    { ...type(made.manifestType, spdx), artifactType: 'application/spdx+json' },
    type('application/vnd.oci.artifact.manifest.v1+json', old),
  ];
  const blobs = [...blobsOf(made), empty, spdx, signature, old];
  await using image = await open(tarOf(layoutOf(manifests, blobs)), signal);
  assert.equal([image.names, image.digest], [['docker.io/a/b:1'], made.manifest.digest]);
  const alone = open(tarOf(layoutOf(manifests.slice(0, 1), blobs)), signal);
  await assert.rejectsWith(alone, 'UNSUPPORTED', /simplesigning.*is not a container image layer/);
  const other = makeImage(PLAIN, 'oci', 'other');
  const two = tarOf(layoutOf([entryOf(made), entryOf(other)], [...blobs, other.manifest, other.config]));
  await assert.rejectsWith(open(two, signal), 'IMAGE_INVALID', /2 images in it/);
});

test('an archive that was saved on another platform names the platforms that it has', async ({ signal }) => {
  const rows = (['arm64', 'amd64'] as const).map((arch) => ({
    platform: `linux/${arch}`,
    image: makeImage(PLAIN, 'oci', 'test', arch),
  }));
  const index = makeIndex(rows);
  const [arm] = rows;
  if (arm === undefined) return assert.unreachable();
  const entry = entryOf(index, { annotations: { 'org.opencontainers.image.ref.name': 'a/b:1' } });
  const saved = tarOf(layoutOf([entry], [index.manifest, ...blobsOf(arm.image)]));
  await assert.rejectsWith(open(saved, signal), 'UNSUPPORTED', /not for linux\/amd64, but for linux\/arm64$/);
  await using image = await open(saved, signal, { arch: 'arm64' });
  assert.is(image.digest, arm.image.manifest.digest);
  await assert.rejectsWith(
    open(tarOf(layoutOf([entry], [index.manifest])), signal),
    'IMAGE_INVALID',
    /is missing in it/,
  );
});

test('a config without a type, which docker once pushed, gets that of docker', async ({ signal }) => {
  const fields = JSON.parse(Buffer.from(IMAGE.manifest.data).toString()) as { readonly config: object };
  const manifest = jsonBlob({ ...fields, config: { ...fields.config, mediaType: 'application/octet-stream' } });
  const entry = entryOf({ ...IMAGE, manifest }, { annotations: { 'org.opencontainers.image.ref.name': 'a/b:1' } });
  await using image = await open(tarOf(layoutOf([entry], blobsOf({ ...IMAGE, manifest }))), signal);
  assert.is(image.config.descriptor.mediaType, 'application/vnd.docker.container.image.v1+json');
  assert.equal(JSON.parse(Buffer.from(image.manifest).toString()), fields);
  assert.is(image.digest, digestOf(image.manifest));
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
  ['bzip2', () => Buffer.from('BZh91AY&SY'), 'IMAGE_INVALID'],
  ['xz', () => Buffer.from('fd377a585a000004', 'hex'), 'IMAGE_INVALID'],
  ['damaged zstd', () => rawZstd(tarOf(GOOD)).subarray(0, 400), 'IMAGE_INVALID'],
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
