import { rm } from 'node:fs/promises';
import { CurlewError } from '../../../src/core/errors.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { publishImages } from '../../support/image-release.ts';
import { binaryLike, makeImage, makeLayer, type Image } from '../../support/images.ts';
import { noise } from '../../support/packages.ts';
import { serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/serve/images');

function image(seed: string, architecture = 'amd64', kind: 'oci' | 'docker' = 'oci'): Image {
  const stored = makeLayer({ 'bin/noise': noise(400_000, seed.length) }, kind);
  const deflated = makeLayer({ 'bin/plain': binaryLike(300_000, seed, 0.2) }, kind, 'none');
  return makeImage([stored, deflated], kind, seed, architecture);
}

async function jsonOf(answer: Response): Promise<unknown> {
  return answer.json();
}

/** The code of the first error in the format of registries. */
async function codeOf(answer: Response): Promise<string | undefined> {
  const { errors } = (await answer.json()) as { readonly errors: readonly { readonly code: string }[] };
  return errors[0]?.code;
}

async function bytesOf(answer: Response): Promise<Buffer> {
  return Buffer.from(await answer.arrayBuffer());
}

test('an image is pulled by tag and digest byte for byte, its registry named or not', async ({ signal }) => {
  await using box = await tree();
  const web = image('web', 'amd64', 'docker');
  const store = await publishImages(
    box,
    [{ name: 'web', version: '1.0', images: { 'docker.io/library/web:1.2': web } }],
    signal,
  );
  await using server = await serveStore(store);
  assert.is((await fetch(`${server.url}/v2/`)).headers.get('docker-distribution-api-version'), 'registry/2.0');
  for (const name of ['docker.io/library/web', 'library/web', 'library/web?ns=docker.io']) {
    const [path = '', query = ''] = name.split('?');
    for (const reference of ['1.2', web.manifest.digest]) {
      const answer = await fetch(`${server.url}/v2/${path}/manifests/${reference}?${query}`);
      assert.is(answer.headers.get('content-type'), web.manifestType);
      assert.is(answer.headers.get('docker-content-digest'), web.manifest.digest);
      assert.ok((await bytesOf(answer)).equals(web.manifest.data));
    }
    for (const { digest, data } of [web.config, ...web.layers]) {
      const address = `${server.url}/v2/${path}/blobs/${digest}?${query}`;
      const head = await fetch(address, { method: 'HEAD' });
      assert.equal([head.status, Number(head.headers.get('content-length'))], [200, data.byteLength]);
      assert.ok((await bytesOf(await fetch(address))).equals(data));
    }
  }
  assert.equal(await jsonOf(await fetch(`${server.url}/v2/library/web/tags/list`)), {
    name: 'library/web',
    tags: ['1.2'],
  });
});

for (const deflated of [false, true]) {
  const how = deflated ? 'deflated' : 'stored';
  test(`any range of a blob that lies ${how} in the package is its bytes`, async ({ signal }) => {
    await using box = await tree();
    const web = image('web');
    const images = { 'a.example/web:1': web };
    const store = await publishImages(box, [{ name: 'web', version: '1.0', images, deflated }], signal);
    await using server = await serveStore(store);
    for (const { digest, data } of web.layers) {
      const address = `${server.url}/v2/a.example/web/blobs/${digest}`;
      const last = data.byteLength - 1;
      for (const [from, to] of [
        [0, 0],
        [65_534, 65_536],
        [65_535, 65_535],
        [65_535, 131_070],
        [1, last],
        [100_000, 100_001],
        [last, last],
        [131_069, last],
      ] as const) {
        const answer = await fetch(address, { headers: { range: `bytes=${from}-${to}` } });
        assert.is(answer.status, 206);
        assert.ok((await bytesOf(answer)).equals(Buffer.from(data.subarray(from, to + 1))), `${digest} ${from}-${to}`);
      }
      // Unpacking it for each of several ranges would be work without bound.
      const several = await fetch(address, { headers: { range: 'bytes=-9,5-6,0-1' } });
      assert.is(several.status, deflated ? 200 : 206);
      assert.is((await bytesOf(several)).equals(data), deflated);
    }
  });
}

/** Counts what is read of packages. */
function counting(store: Store): { readonly store: Store; readonly reads: () => number } {
  let reads = 0;
  const get: Store['get'] = async (key, options) => {
    if (key.endsWith('.tar.gz')) reads += 1;
    return store.get(key, options);
  };
  return { store: { ...store, get }, reads: () => reads };
}

test('digests that nobody has cost no more reads, however many are asked for', async ({ signal }) => {
  await using box = await tree();
  const addons = ['1.0', '2.0', '3.0'].flatMap((version) =>
    (['amd64', 'arm64'] as const).map((arch) => {
      const images = { [`a.example/web:${version}`]: image(version, arch) };
      return { name: 'web', version, arch, images } as const;
    }),
  );
  const { store, reads } = counting(await publishImages(box, addons, signal));
  await using server = await serveStore(store);
  const ask = async (kind: 'manifests' | 'blobs', at: number): Promise<number> =>
    (await fetch(`${server.url}/v2/web/${kind}/sha256:${String(at).padStart(64, '0')}`)).status;
  assert.equal([await ask('manifests', 0), await ask('blobs', 0)], [404, 404]);
  const first = reads();
  for (let at = 1; at < 9; at += 1) assert.equal([await ask('manifests', at), await ask('blobs', at)], [404, 404]);
  assert.is(reads(), first);
});

test('an image of two architectures is an index, which is found by tag and by its digest', async ({ signal }) => {
  await using box = await tree();
  const [amd, arm] = [image('web'), image('web', 'arm64')];
  const reference = 'a.example/web:1';
  const store = await publishImages(
    box,
    [
      { name: 'web', version: '1.0', images: { [reference]: amd } },
      { name: 'web', version: '1.0', arch: 'arm64', images: { [reference]: arm } },
    ],
    signal,
  );
  await using server = await serveStore(store);
  const answer = await fetch(`${server.url}/v2/web/manifests/1`);
  const digest = answer.headers.get('docker-content-digest') ?? '';
  const bytes = await bytesOf(answer);
  assert.is(digestOf(bytes), digest);
  const { manifests } = JSON.parse(bytes.toString()) as { readonly manifests: readonly unknown[] };
  assert.equal(
    manifests,
    [amd, arm].map(({ manifest, manifestType }, at) => ({
      digest: manifest.digest,
      mediaType: manifestType,
      platform: { architecture: at === 0 ? 'amd64' : 'arm64', os: 'linux' },
      size: manifest.data.byteLength,
    })),
  );
  assert.ok((await bytesOf(await fetch(`${server.url}/v2/web/manifests/${digest}`))).equals(bytes));
  assert.is((await fetch(`${server.url}/v2/web/manifests/${arm.manifest.digest}`)).status, 200);
});

test('two add-ons, one image: the blobs come from either; one name in two registries is told apart', async ({
  signal,
}) => {
  await using box = await tree();
  const [one, other] = [image('one'), image('other!')];
  const store = await publishImages(
    box,
    [
      { name: 'a', version: '1.0', images: { 'x.example/team/app:1': one } },
      { name: 'b', version: '1.0', images: { 'y.example/team/app:1': other, 'x.example/team/app:2': one } },
    ],
    signal,
  );
  await using server = await serveStore(store);
  assert.equal(await jsonOf(await fetch(`${server.url}/v2/_catalog`)), {
    repositories: ['x.example/team/app', 'y.example/team/app'],
  });
  const digest = async (path: string): Promise<string | null> =>
    (await fetch(`${server.url}/v2/${path}`, { method: 'HEAD' })).headers.get('docker-content-digest');
  assert.is(await digest('team/app/manifests/1?ns=y.example'), other.manifest.digest);
  assert.is(await digest('x.example/team/app/manifests/2'), one.manifest.digest);
  assert.is(await digest('team/app/manifests/1'), null);
});

test('lists come in pages that name the next one', async ({ signal }) => {
  await using box = await tree();
  const web = image('web');
  const tags = ['1', '2', '3'];
  const images = Object.fromEntries(tags.map((tag) => [`a.example/web:${tag}`, web]));
  const store = await publishImages(box, [{ name: 'web', version: '1.0', images }], signal);
  await using server = await serveStore(store);
  let next: string | undefined = '/v2/web/tags/list?n=2';
  const pages: unknown[] = [];
  while (next !== undefined) {
    const answer: Response = await fetch(server.url + next);
    pages.push(await jsonOf(answer));
    next = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
  }
  assert.equal(pages, [
    { name: 'web', tags: ['1', '2'] },
    { name: 'web', tags: ['3'] },
  ]);
  assert.is((await fetch(`${server.url}/v2/_catalog?n=-1`)).status, 400);
  await using behind = await serveStore(store, { listen: { publicUrl: 'https://addons.example/curlew' } });
  const { headers } = await fetch(`${behind.url}/v2/web/tags/list?n=2`);
  assert.match(headers.get('link') ?? '', '</curlew/v2/web/tags/list?n=2&last=2>');
});

test('a package that is missing or a store that refuses is no matter of the client, who learns nothing of it', async ({
  signal,
}) => {
  await using box = await tree();
  const store = await publishImages(
    box,
    [{ name: 'web', version: '1.0', images: { 'a.example/web:1': image('web') } }],
    signal,
  );
  await rm(box.at('store/r1/web-1.0.tar.gz'));
  const refusing: Store = {
    ...store,
    head: async () => Promise.reject(new CurlewError('AUTH_FAILED', `${box.path}: the key is not accepted`)),
  };
  for (const broken of [store, refusing]) {
    await using server = await serveStore(broken);
    const answer = await fetch(`${server.url}/v2/web/manifests/1`);
    assert.is(answer.status, 502);
    assert.not.match(await answer.clone().text(), box.path);
    assert.is(await codeOf(answer), 'UNKNOWN');
    assert.match(server.log[0]?.error ?? '', box.path);
  }
});

test('what is not here is told in the words of registries, and nothing can be pushed', async ({ signal }) => {
  await using box = await tree();
  const [web, old] = [image('web'), image('old!!')];
  const store = await publishImages(
    box,
    [
      { name: 'web', version: '1.0', images: { 'a.example/web:1': web } },
      { name: 'old', version: '1.0', dockerArchives: true, images: { 'a.example/old:1': old } },
    ],
    signal,
  );
  await using server = await serveStore(store);
  const none = `sha256:${'0'.repeat(64)}`;
  for (const [path, status, code, method] of [
    ['other/manifests/1', 404, 'NAME_UNKNOWN'],
    ['web/manifests/2', 404, 'MANIFEST_UNKNOWN'],
    [`web/manifests/${none}`, 404, 'MANIFEST_UNKNOWN'],
    [`web/manifests/${old.manifest.digest}`, 404, 'MANIFEST_UNKNOWN'],
    [`web/blobs/${none}`, 404, 'BLOB_UNKNOWN'],
    ['web/blobs/sha512:ab', 400, 'DIGEST_INVALID'],
    ['a.example/old/manifests/1', 404, 'MANIFEST_UNKNOWN'],
    ['web/referrers/latest', 400, 'DIGEST_INVALID'],
    ['web/signatures/1', 404, 'UNSUPPORTED'],
    ['web/manifests/%00', 400, 'NAME_INVALID'],
    ['web/manifests/sha256:zz', 400, 'DIGEST_INVALID'],
    ['web/blobs/sha256:zz', 400, 'DIGEST_INVALID'],
    ['web/blobs/uploads/', 405, 'UNSUPPORTED', 'POST'],
    ['web/manifests/1', 405, 'UNSUPPORTED', 'PUT'],
  ] as const) {
    const answer = await fetch(`${server.url}/v2/${path}`, { method: method ?? 'GET' });
    assert.is(answer.status, status, path);
    assert.is(answer.headers.get('allow'), status === 405 ? 'GET, HEAD' : null, path);
    assert.is(await codeOf(answer), code, path);
  }
  const bad = await fetch(`${server.url}/v2/web/blobs/sha256:zz`);
  assert.match(await bad.text(), 'not a digest: write sha256: and 64 hexadecimal digits in lower case');
  assert.match(await (await fetch(`${server.url}/v3/`)).text(), 'not found; see /');
});

test('an image, known or not, has an empty list of referrers', async ({ signal }) => {
  await using box = await tree();
  const web = image('web');
  const images = { 'a.example/web:1': web };
  await using server = await serveStore(await publishImages(box, [{ name: 'web', version: '1.0', images }], signal));
  for (const path of [
    `a.example/web/referrers/${web.manifest.digest}`,
    `x/referrers/${web.config.digest}?artifactType=a%2Fb`,
  ]) {
    const answer = await fetch(`${server.url}/v2/${path}`);
    assert.equal([answer.status, answer.headers.get('content-type')], [200, 'application/vnd.oci.image.index.v1+json']);
    assert.equal(await jsonOf(answer), {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [],
    });
  }
});

test.run();
