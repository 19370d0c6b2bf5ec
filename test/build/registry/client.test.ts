import * as assert from '../../support/assert.ts';
import { collector } from '../../support/client.ts';
import { answers, endsShort, neverEnds, redirects, resetsAtHalf, sendsOtherBytes } from '../../support/faults.ts';
import { binaryLike, blobOf, makeImage, makeIndex, makeLayer, type Image } from '../../support/images.ts';
import { client, layerBytes, resolve } from '../../support/pull.ts';
import { startRegistry } from '../../support/registry-server.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('build/registry/client');
const LAYER = makeLayer({ 'bin/a': binaryLike(300_000, 'a', 1) });
const IMAGE = makeImage([LAYER, makeLayer({ b: 'b' })]);

/** An image of one layer, whose descriptor has these fields. */
function withLayer(fields: Readonly<Record<string, unknown>>): Image {
  const image = makeImage([LAYER]);
  const manifest = JSON.parse(Buffer.from(image.manifest.data).toString()) as { layers: object[] };
  return {
    ...image,
    manifest: blobOf({ ...manifest, layers: manifest.layers.map((layer) => ({ ...layer, ...fields })) }),
  };
}

for (const kind of ['oci', 'docker'] as const) {
  test(`an image with a ${kind} manifest is resolved and fetched byte for byte`, async ({ signal }) => {
    const made = makeImage([makeLayer({ a: 'a' }, kind), makeLayer({ b: 'b' }, kind, 'none')], kind);
    await using server = await startRegistry({ 'team/app:1': made });
    await using registry = await client();
    const image = await resolve(registry, `${server.host}/team/app:1`, signal);
    assert.is(image.reference, `${server.host}/team/app:1`);
    assert.equal(image.names, [`${server.host}/team/app:1`]);
    assert.is(image.digest, made.manifest.digest);
    assert.is(image.resolved, made.manifest.digest);
    assert.is(image.mediaType, made.manifestType);
    assert.ok(Buffer.from(image.manifest).equals(made.manifest.data));
    assert.ok(Buffer.from(image.config.data).equals(made.config.data));
    assert.is(image.platform, 'linux/amd64');
    for (const [index, layer] of image.layers.entries()) {
      const expected = Buffer.from(made.layers[index]?.data ?? '');
      assert.is(layer.mediaType, made.layers[index]?.mediaType);
      assert.ok((await layerBytes(image, layer, signal)).equals(expected));
      assert.ok((await layerBytes(image, layer, signal, 100)).equals(expected.subarray(100)));
    }
  });
}

for (const kind of ['oci', 'docker'] as const) {
  test(`the platform is chosen from a ${kind} index`, async ({ signal }) => {
    const amd = makeImage([makeLayer({ a: 'amd' }, kind)], kind);
    const arm = makeImage([makeLayer({ a: 'arm' }, kind)], kind, 'arm', 'arm64');
    const odd = makeImage([makeLayer({ a: 'odd' }, kind)], kind, 'odd');
    const index = makeIndex(
      [
        { platform: 'unknown/unknown', image: odd },
        { platform: 'linux/amd64/v3', image: odd },
        { platform: 'windows/amd64', image: odd },
        { platform: 'linux/arm64/v8', image: arm },
        { platform: 'linux/amd64', image: amd },
      ],
      kind,
    );
    await using server = await startRegistry({ 'app:1': index });
    await using registry = await client();
    const image = await resolve(registry, `${server.host}/app:1`, signal);
    assert.is(image.digest, amd.manifest.digest);
    assert.is(image.resolved, index.manifest.digest);
    assert.is((await resolve(registry, `${server.host}/app:1`, signal, 'arm64')).digest, arm.manifest.digest);
    const pinned = await resolve(registry, `${server.host}/app:1@${index.manifest.digest}`, signal);
    assert.equal(pinned.names, [`${server.host}/app:1`, `${server.host}/app@${index.manifest.digest}`]);
  });
}

test('an index in an index is followed, one without end is not', async ({ signal }) => {
  const inner = makeIndex([{ platform: 'linux/amd64', image: IMAGE }]);
  let deep = inner;
  for (let depth = 0; depth < 5; depth += 1) deep = makeIndex([{ platform: undefined, image: deep }]);
  const once = makeIndex([{ platform: undefined, image: inner }]);
  await using server = await startRegistry({ 'app:1': once, 'app:deep': deep });
  await using registry = await client();
  assert.is((await resolve(registry, `${server.host}/app:1`, signal)).digest, IMAGE.manifest.digest);
  await assert.rejectsWith(resolve(registry, `${server.host}/app:deep`, signal), 'IMAGE_INVALID', /nested too deeply/);
});

test('a platform that is not there is UNSUPPORTED, with those that are', async ({ signal }) => {
  const arm = makeImage([LAYER], 'oci', 'arm', 'arm64');
  const index = makeIndex([{ platform: 'linux/arm64/v8', image: arm }]);
  await using server = await startRegistry({ 'app:index': index, 'app:single': arm });
  await using registry = await client();
  for (const tag of ['index', 'single']) {
    const asked = resolve(registry, `${server.host}/app:${tag}`, signal);
    const error = await assert.rejectsWith(asked, 'UNSUPPORTED', /not for linux\/amd64, but for linux\/arm64/);
    assert.match(error.hint ?? '', /--arch/);
  }
});

test('an image without a platform is refused with the option that accepts it by name', async ({ signal }) => {
  await using server = await startRegistry({ 'app:1': makeImage([LAYER], 'oci', 'none', '', '') });
  const name = `${server.host}/app`;
  await using registry = await client();
  const refused = resolve(registry, `${name}:1`, signal);
  const error = await assert.rejectsWith(refused, 'UNSUPPORTED', /not for linux\/amd64, but without a platform$/);
  assert.match(error.hint ?? '', new RegExp(`--any-platform ${name}$`));
  await using accepting = await client({ anyPlatform: [name] });
  assert.is((await resolve(accepting, `${name}:1`, signal)).platform, 'linux/amd64');
});

const odd = [
  ['x86_64 for amd64', undefined, ['x86_64', 'Linux']],
  ['no system', undefined, ['amd64', '']],
  ['no platform, but an index does', 'linux/amd64', ['', '']],
  ['another architecture than its index', 'linux/amd64', ['arm64', 'linux']],
  ['a platform that its index writes as x86_64', 'linux/x86_64', ['amd64', 'linux']],
  ['a platform in an index with empty names', '/', ['amd64', 'linux']],
] as const;
for (const [what, platform, [arch, os]] of odd) {
  test(`an image whose config names ${what} is found`, async ({ signal }) => {
    const image = makeImage([LAYER], 'oci', what, arch, os);
    const whole = platform === undefined ? image : makeIndex([{ platform, image }]);
    await using server = await startRegistry({ 'app:1': whole });
    await using registry = await client();
    assert.is((await resolve(registry, `${server.host}/app:1`, signal)).digest, image.manifest.digest);
  });
}

test('an image for another system than its index says is refused, and an index without images', async ({ signal }) => {
  const windows = makeImage([LAYER], 'oci', 'windows', 'amd64', 'windows');
  await using server = await startRegistry({
    'app:windows': makeIndex([{ platform: 'linux/amd64', image: windows }]),
    'app:empty': makeIndex([]),
  });
  await using registry = await client();
  for (const [tag, message] of [
    ['windows', /not for linux\/amd64, but for windows\/amd64$/],
    ['empty', /its index lists no image for linux\/amd64$/],
  ] as const) {
    const asked = resolve(registry, `${server.host}/app:${tag}`, signal);
    const error = await assert.rejectsWith(asked, 'UNSUPPORTED', message);
    assert.not.match(error.hint ?? '', /--arch/);
  }
});

const OUTSIDE = [
  'application/vnd.oci.image.layer.v1.tar+gzip',
  'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip',
  'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
];
for (const mediaType of OUTSIDE) {
  test(`a layer of type ${mediaType} with urls comes from the registry, and from them only without it`, async ({
    signal,
  }) => {
    await using elsewhere = await serveFiles({ layer: LAYER.data });
    const image = withLayer({ mediaType, urls: ['http://169.254.169.254/', `${elsewhere.url}/layer`] });
    await using server = await startRegistry({ 'app:1': image });
    await using registry = await client();
    const found = await resolve(registry, `${server.host}/app:1`, signal);
    const [layer] = found.layers;
    if (layer === undefined) return assert.unreachable();
    assert.ok((await layerBytes(found, layer, signal)).equals(Buffer.from(LAYER.data)));
    assert.is(elsewhere.log.length, 0);
    const gone = answers({ status: 404 }, { path: new RegExp(LAYER.digest) });
    await using without = await startRegistry({ 'app:1': image }, { faults: [gone] });
    const outside = await resolve(registry, `${without.host}/app:1`, signal);
    assert.ok((await layerBytes(outside, layer, signal)).equals(Buffer.from(LAYER.data)));
    assert.is(elsewhere.log.length, 1);
  });
}

test('a layer of size 0 that is not empty is refused', async ({ signal }) => {
  await using server = await startRegistry({ 'app:1': withLayer({ size: 0 }) });
  await using registry = await client();
  const asked = resolve(registry, `${server.host}/app:1`, signal);
  await assert.rejectsWith(asked, 'IMAGE_INVALID', new RegExp(`${LAYER.digest} cannot have a size of 0$`));
});

const IMAGES = { 'app:1': IMAGE };
const failures = [
  ['401', { status: 401 }, 'AUTH_FAILED', 1],
  ['403', { status: 403 }, 'AUTH_FAILED', 1],
  ['404', { status: 404 }, 'NOT_FOUND', 1],
  ['429 for ever', { status: 429, headers: { 'retry-after': '0' } }, 'FETCH_FAILED', 4],
  ['503 for ever', { status: 503 }, 'FETCH_FAILED', 4],
] as const;
for (const [what, reply, code, requests] of failures) {
  test(`a registry that answers ${what} is ${code}`, async ({ signal }) => {
    await using server = await startRegistry(IMAGES, { faults: [answers(reply, { path: /manifests/ })] });
    await using registry = await client();
    const error = await assert.rejectsWith(resolve(registry, `${server.host}/app:1`, signal), code);
    assert.match(error.message, new RegExp(`^cannot fetch image ${server.host}/app:1: .*returned ${reply.status}`));
    assert.is(server.log.filter(({ path }) => path.includes('manifests')).length, requests);
  });
}

test('429 with Retry-After and 503 twice are waited for, with manifests and with layers', async ({ signal }) => {
  const busy = [
    answers({ status: 429, headers: { 'retry-after': '1' } }, { path: /manifests/, times: 1 }),
    answers({ status: 503 }, { path: /blobs/, times: 2 }),
    answers({ status: 503 }, { path: new RegExp(LAYER.digest), times: 2 }),
  ];
  await using server = await startRegistry(IMAGES, { faults: busy });
  await using registry = await client();
  const image = await resolve(registry, `${server.host}/app:1`, signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  assert.ok((await layerBytes(image, layer, signal)).equals(Buffer.from(LAYER.data)));
});

for (const [what, path, code] of [
  ['manifest', /manifests/, 'DIGEST_MISMATCH'],
  ['config', new RegExp(IMAGE.config.digest), 'DIGEST_MISMATCH'],
] as const) {
  test(`a ${what} of another digest is ${code}`, async ({ signal }) => {
    await using server = await startRegistry(IMAGES, { faults: [sendsOtherBytes({ path })] });
    await using registry = await client();
    await assert.rejectsWith(resolve(registry, `${server.host}/app@${IMAGE.manifest.digest}`, signal), code);
    await assert.rejectsWith(resolve(registry, `${server.host}/app:1`, signal), code);
  });
}

test('a layer whose connection resets at half, or ends short, arrives whole all the same', async ({ signal }) => {
  const path = new RegExp(LAYER.digest);
  const faults = [resetsAtHalf({ path, times: 1 }), endsShort({ path, times: 1 })];
  await using server = await startRegistry(IMAGES, { faults });
  await using registry = await client();
  const image = await resolve(registry, `${server.host}/app:1`, signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  assert.ok((await layerBytes(image, layer, signal)).equals(Buffer.from(LAYER.data)));
  assert.match(String(server.blobRequests().at(-1)?.headers['range']), /^bytes=[1-9]/);
});

test('a layer without end is cut at its size', async ({ signal }) => {
  await using server = await startRegistry(IMAGES, { faults: [neverEnds({ path: new RegExp(LAYER.digest) })] });
  await using registry = await client();
  const image = await resolve(registry, `${server.host}/app:1`, signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  const { write, body } = collector();
  await assert.rejectsWith(image.fetch(layer, { from: 0, write, signal }), 'FETCH_FAILED', /returned more than/);
  assert.ok(body().byteLength <= layer.size);
});

test('a manifest of 100 MB is refused before it is read, and one without end at the limit', async ({ signal }) => {
  const announced = answers({ status: 200, headers: { 'content-length': '100000000' }, sending: { resetAt: 0 } });
  await using large = await startRegistry(IMAGES, { faults: [announced] });
  await using endless = await startRegistry(IMAGES, { faults: [neverEnds({ path: /manifests/ })] });
  await using registry = await client();
  for (const server of [large, endless]) {
    const asked = resolve(registry, `${server.host}/app:1`, signal);
    await assert.rejectsWith(asked, 'FETCH_FAILED', /longer than 4194304 bytes/);
    assert.is(server.log.filter(({ path }) => path.includes('manifests')).length, 1);
  }
});

test('a redirect loop ends', async ({ signal }) => {
  await using server = await startRegistry(IMAGES, { faults: [redirects(({ path }) => path, { path: /manifests/ })] });
  await using registry = await client();
  await assert.rejectsWith(resolve(registry, `${server.host}/app:1`, signal), 'FETCH_FAILED', /redirects/);
});

function manifestWith(change: Readonly<Record<string, unknown>>): Image {
  const value = JSON.parse(Buffer.from(IMAGE.manifest.data).toString()) as Readonly<Record<string, unknown>>;
  return { ...IMAGE, manifest: blobOf({ ...value, ...change }) };
}

const [first] = IMAGE.layers.map(({ mediaType, digest, data }) => ({ mediaType, digest, size: data.byteLength }));
const hostile = [
  ['schema 1', { schemaVersion: 1 }, 'UNSUPPORTED'],
  ['schema 3', { schemaVersion: 3 }, 'IMAGE_INVALID'],
  ['both layers and manifests', { manifests: [] }, 'IMAGE_INVALID'],
  ['a path as digest', { layers: [{ ...first, digest: 'sha256:../../../../etc/passwd' }] }, 'IMAGE_INVALID'],
  ['a digest of another kind', { layers: [{ ...first, digest: `md5:${'0'.repeat(32)}` }] }, 'IMAGE_INVALID'],
  ['a negative size', { layers: [{ ...first, size: -1 }] }, 'IMAGE_INVALID'],
  ['a size of 1e300', { layers: [{ ...first, size: 1e300 }] }, 'IMAGE_INVALID'],
  ['a size that is text', { layers: [{ ...first, size: '5' }] }, 'IMAGE_INVALID'],
  ['two sizes for one digest', { layers: [first, { ...first, size: 1 }] }, 'IMAGE_INVALID'],
  ['fewer layers than the config knows', { layers: [first] }, 'IMAGE_INVALID'],
  ['layers that are no list', { layers: {} }, 'IMAGE_INVALID'],
  ['2000 layers', { layers: Array.from({ length: 2000 }, () => first) }, 'IMAGE_INVALID'],
  ['a layer that is none', { layers: [{ ...first, mediaType: 'application/wasm' }] }, 'UNSUPPORTED'],
  ['a media type with a newline', { layers: [{ ...first, mediaType: 'a/b\nc' }] }, 'IMAGE_INVALID'],
  ['a chart as config', { config: { ...first, mediaType: 'application/vnd.cncf.helm.config.v1+json' } }, 'UNSUPPORTED'],
  [
    'a config of 1 GB',
    { config: { ...first, mediaType: 'application/vnd.oci.image.config.v1+json', size: 1e9 } },
    'IMAGE_INVALID',
  ],
  ['a media type that it has not', { mediaType: 'application/vnd.oci.image.index.v1+json' }, 'IMAGE_INVALID'],
] as const;
for (const [what, change, code] of hostile) {
  test(`a manifest with ${what} is ${code}`, async ({ signal }) => {
    await using server = await startRegistry({ 'app:1': manifestWith(change) });
    await using registry = await client();
    await assert.rejectsWith(resolve(registry, `${server.host}/app:1`, signal), code);
    assert.is(server.blobRequests().length <= 1, true);
  });
}

for (const body of ['', '[]', 'null', '<html>', '{"schemaVersion":2', '['.repeat(100_000)]) {
  test(`a manifest of ${JSON.stringify(body.slice(0, 20))} is IMAGE_INVALID`, async ({ signal }) => {
    await using server = await startRegistry({}, { faults: [answers({ status: 200, body }, { path: /manifests/ })] });
    await using registry = await client();
    await assert.rejectsWith(resolve(registry, `${server.host}/app:1`, signal), 'IMAGE_INVALID');
  });
}

test.run();
