import { CurlewError } from '../../../src/core/errors.ts';
import * as assert from '../../support/assert.ts';
import { quickHttp } from '../../support/client.ts';
import { answers, redirects, resetsAtHalf } from '../../support/faults.ts';
import { binaryLike, makeImage, makeLayer } from '../../support/images.ts';
import { startProxy } from '../../support/proxy-server.ts';
import { client, layerBytes, ref, resolve } from '../../support/pull.ts';
import { startRegistry } from '../../support/registry-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate, startBoth } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('build/registry/routes');
const LAYER = makeLayer({ 'bin/a': binaryLike(300_000, 'a', 1) });
const IMAGE = makeImage([LAYER, makeLayer({ b: 'b' })]);

const IMAGES = { 'app:1': IMAGE };

test('mirrors are asked in order, then the registry; the first that answers counts', async ({ signal }) => {
  const other = makeImage([makeLayer({ other: 'x' })]);
  await using broken = await startRegistry({}, { faults: [answers({ status: 500 })] });
  await using empty = await startRegistry({});
  await using mirror = await startRegistry({ 'cache/app:1': IMAGE });
  await using origin = await startRegistry({ 'cache/app:1': other, 'own:1': other });
  const mirrors = new Map([[origin.host, [broken.host, `http://${empty.host}/api/docker/hub/v2`, mirror.host]]]);
  await using registry = await client({ mirrors });
  const image = await resolve(registry, `${origin.host}/cache/app:1`, signal);
  assert.is(image.digest, IMAGE.manifest.digest);
  assert.is(image.reference, `${origin.host}/cache/app:1`);
  assert.is(empty.log.at(-1)?.path, '/api/docker/hub/v2/cache/app/manifests/1');
  assert.is(origin.log.length, 0);
  assert.is((await resolve(registry, `${origin.host}/own:1`, signal)).digest, other.manifest.digest);
  const error = await assert.rejectsWith(resolve(registry, `${origin.host}/none:1`, signal), 'NOT_FOUND');
  assert.match(error.message, /other endpoints: .*returned 500/);
});

test('a path of a mirror is the project there, in addresses and in what tokens are asked for', async ({ signal }) => {
  const auth = { kind: 'bearer', token: 'any' } as const;
  await using mirror = await startRegistry({ 'proxy/hub/cache/app:1': IMAGE }, { auth });
  for (const address of [`${mirror.host}/proxy/hub`, `http://${mirror.host}/proxy/hub/`]) {
    await using registry = await client({ mirrors: new Map([['images.invalid', [address]]]) });
    const image = await resolve(registry, 'images.invalid/cache/app:1', signal);
    assert.is(image.reference, 'images.invalid/cache/app:1');
    for (const layer of image.layers) assert.is((await layerBytes(image, layer, signal)).byteLength, layer.size);
  }
  const asked = mirror.log.filter(({ path }) => path.startsWith('/token')).map(({ path }) => path);
  assert.equal(new Set(asked), new Set(['/token?service=test&scope=repository%3Aproxy%2Fhub%2Fcache%2Fapp%3Apull']));
});

test('a mirror that has no such image says more than a registry that cannot be reached', async ({ signal }) => {
  await using mirror = await startRegistry({});
  await using registry = await client({ mirrors: new Map([['images.invalid', [mirror.host]]]) });
  const error = await assert.rejectsWith(resolve(registry, 'images.invalid/app:1', signal), 'NOT_FOUND');
  assert.match(error.message, /returned 404.*other endpoints: .*images\.invalid/);
});

test('where none can be reached, the error is that of the mirror', async ({ signal }) => {
  const mirrors = new Map([['images.invalid', ['http://mirror.test:5000']]]);
  await using registry = await client({ mirrors });
  const error = await assert.rejectsWith(resolve(registry, 'images.invalid/app:1', signal), 'FETCH_FAILED');
  assert.match(error.message, /plain http to mirror\.test:5000.*other endpoints: .*images\.invalid/);
  assert.match(error.hint ?? '', /--allow-http mirror\.test:5000/);
});

test('a web page in the place of a manifest is told as one', async ({ signal }) => {
  const page = { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>log in</html>' };
  await using server = await startRegistry(IMAGES, { faults: [answers(page, { path: /manifests/ })] });
  await using registry = await client();
  const failed = resolve(registry, `${server.host}/app:1`, signal);
  const error = await assert.rejectsWith(failed, 'FETCH_FAILED', /returned a web page/);
  assert.match(error.hint ?? '', /login page or a proxy/);
});

test('a layer that a mirror lost half-way comes from the registry, from where it stopped', async ({ signal }) => {
  const path = new RegExp(LAYER.digest);
  const faults = [resetsAtHalf({ path, times: 1 }), answers({ status: 404 }, { path })];
  await using mirror = await startRegistry(IMAGES, { faults });
  await using origin = await startRegistry(IMAGES);
  await using registry = await client({ mirrors: new Map([[origin.host, [mirror.host]]]) });
  const image = await resolve(registry, `${origin.host}/app:1`, signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  assert.ok((await layerBytes(image, layer, signal)).equals(Buffer.from(LAYER.data)));
  assert.match(String(origin.blobRequests().at(-1)?.headers['range']), /^bytes=[1-9]/);
});

test('a writer that fails is not taken for a broken mirror', async ({ signal }) => {
  await using mirror = await startRegistry(IMAGES);
  await using origin = await startRegistry(IMAGES);
  await using registry = await client({ mirrors: new Map([[origin.host, [mirror.host]]]) });
  const image = await resolve(registry, `${origin.host}/app:1`, signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  const write = (): undefined => {
    throw new CurlewError('FETCH_FAILED', 'the disk said so');
  };
  await assert.rejectsWith(image.fetch(layer, { from: 0, write, signal }), 'FETCH_FAILED', /^the disk said so$/);
  assert.is(origin.log.length, 0);
});

test('a lookup takes no body where the registry answers HEAD, and one where it does not', async ({ signal }) => {
  await using server = await startRegistry(IMAGES);
  const noHead = answers({ status: 405 }, { path: /manifests/, times: 1 });
  await using old = await startRegistry(IMAGES, { faults: [noHead] });
  await using registry = await client();
  for (const { host, log } of [server, old]) {
    assert.is(await registry.currentDigest(ref(`${host}/app:1`), { signal }), IMAGE.manifest.digest);
    assert.is(
      log.filter(({ method, path }) => method === 'GET' && path.includes('manifests')).length,
      host === old.host ? 1 : 0,
    );
  }
  await assert.rejectsWith(registry.currentDigest(ref(`${server.host}/none:1`), { signal }), 'NOT_FOUND');
});

test('a registry behind TLS is asked by https, also on this machine', async ({ signal }) => {
  const certificate = await makeCertificate();
  await using files = await tree({ 'ca.pem': certificate.ca });
  await using server = await startRegistry(IMAGES, { tls: certificate, name: 'localhost' });
  await using registry = await client({ http: await quickHttp({ caFile: files.at('ca.pem') }) });
  assert.is((await resolve(registry, `${server.host}/app:1`, signal)).digest, IMAGE.manifest.digest);
  await using untrusting = await client();
  const error = await assert.rejectsWith(resolve(untrusting, `${server.host}/app:1`, signal), 'FETCH_FAILED');
  assert.match(error.hint ?? '', /--ca-file/);
});

test('a certificate that is refused does not lead to plain http, though the port speaks that as well', async ({
  signal,
}) => {
  await using secure = await startRegistry(IMAGES, { tls: await makeCertificate() });
  await using plain = await startRegistry(IMAGES);
  await using both = await startBoth(secure.port, plain.port);
  await using registry = await client();
  const error = await assert.rejectsWith(resolve(registry, `${both.host}/app:1`, signal), 'FETCH_FAILED');
  assert.match(error.hint ?? '', /--ca-file/);
  assert.equal(plain.log, []);
});

test('a registry behind a proxy, with a private authority and layers on another host', async ({ signal }) => {
  const certificate = await makeCertificate(['registry.test', 'blobs.test']);
  await using files = await tree({ 'ca.pem': certificate.ca });
  await using blobs = await serveFiles({ layer: LAYER.data }, { tls: certificate });
  const faults = [redirects('https://blobs.test/layer?signature=canary', { path: new RegExp(LAYER.digest) })];
  await using server = await startRegistry(IMAGES, { tls: certificate, faults });
  await using proxy = await startProxy({ hosts: { 'registry.test:443': server.port, 'blobs.test:443': blobs.port } });
  const http = await quickHttp({ caFile: files.at('ca.pem'), env: { https_proxy: proxy.url } });
  await using registry = await client({ http });
  const image = await resolve(registry, 'registry.test/app:1', signal);
  const [layer] = image.layers;
  if (layer === undefined) return assert.unreachable();
  assert.ok((await layerBytes(image, layer, signal)).equals(Buffer.from(LAYER.data)));
  assert.ok(proxy.log.includes('CONNECT registry.test:443'));
  assert.ok(proxy.log.includes('CONNECT blobs.test:443'));
});

test('plain http to another machine is refused unless it is allowed by name', async ({ signal }) => {
  await using server = await startRegistry(IMAGES);
  await using proxy = await startProxy({ hosts: { 'plain.test:5000': server.port } });
  const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url };
  await using strict = await client({ http: await quickHttp({ env }) });
  await assert.rejectsWith(resolve(strict, 'plain.test:5000/app:1', signal), 'FETCH_FAILED');
  await using lax = await client({ http: await quickHttp({ env, allowHttp: ['plain.test:5000'] }) });
  assert.is((await resolve(lax, 'plain.test:5000/app:1', signal)).digest, IMAGE.manifest.digest);
});

test.run();
