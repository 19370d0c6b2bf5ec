import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { FILE, onePackage, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/serve/objects');

test('objects of the store are served as they are, and only those', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const version = await fetch(`${server.url}/dist/VERSION`);
  assert.is(await version.text(), 'r1');
  const answer = await fetch(server.url + FILE);
  const object = await store.head('r1/alpha-1.0-k1.tar.gz', { signal });
  assert.is(answer.headers.get('etag'), object?.etag);
  assert.is((await answer.arrayBuffer()).byteLength, object?.size);
  assert.is((await fetch(`${server.url}/dist/r1/alpha-1.0+k1.tar.gz`, { method: 'HEAD' })).status, 200);
  assert.is((await fetch(`${server.url}/dist/r1/index.json`)).status, 200);
  for (const path of ['/dist/installers/one.yaml', '/dist/r1/beta-1.0.tar.gz', '/dist/.curlew/notes.json']) {
    assert.is((await fetch(server.url + path)).status, 404, path);
  }
});

test('nothing outside of the store is served through a symbolic link, and the client is not told of it', async ({
  signal,
}) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using outside = await tree({ 'x.yaml': 'a secret' });
  await rm(join(store.place.base, 'r1/alpha-1.0-k1.tar.gz'));
  await symlink(outside.at('x.yaml'), join(store.place.base, 'r1/alpha-1.0-k1.tar.gz'));
  await rm(join(store.place.base, 'installers'), { recursive: true });
  await symlink(outside.path, join(store.place.base, 'installers'));
  await using server = await serveStore(store);
  for (const path of [FILE, '/installer/x']) {
    const answer = await fetch(server.url + path);
    assert.is(answer.status, 502, path);
    assert.not.match(await answer.text(), /secret|symbolic|curlew-test/);
  }
});

test('a package without a release leads to the current one, or to the web server in front of the store', async ({
  signal,
}) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const near = await fetch(`${server.url}/dist/alpha-1.0+k1.tar.gz`, { redirect: 'manual' });
  assert.equal([near.status, near.headers.get('location')], [302, FILE]);
  await using behind = await serveStore(store, { listen: { publicUrl: 'https://addons.example/our/curlew' } });
  const led = await fetch(`${behind.url}/dist/alpha-1.0+k1.tar.gz`, { redirect: 'manual' });
  assert.is(led.headers.get('location'), `/our/curlew${FILE}`);
  await using far = await serveStore(store, { site: { redirect: 'https://cdn.example/dist' } });
  for (const path of ['/dist/alpha-1.0-k1.tar.gz', FILE]) {
    const answer = await fetch(far.url + path, { redirect: 'manual' });
    assert.equal(
      [answer.status, answer.headers.get('location')],
      [302, 'https://cdn.example/dist/r1/alpha-1.0-k1.tar.gz'],
    );
  }
});

test('HEAD, conditions and If-Range answer by the etag', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const ask = async (headers: Record<string, string>, method = 'GET'): Promise<Response> => {
    const answer = await fetch(server.url + FILE, { headers, method });
    await answer.arrayBuffer();
    return answer;
  };
  const etag = (await ask({}, 'HEAD')).headers.get('etag') ?? '';
  assert.is((await ask({ range: 'bytes=0-9' }, 'HEAD')).status, 200);
  assert.is((await ask({ 'if-none-match': etag })).status, 304);
  assert.is((await ask({ 'if-none-match': `"other", W/${etag}` })).status, 304);
  assert.is((await ask({ 'if-none-match': '"other"' })).status, 200);
  assert.is((await ask({ 'if-match': '"other"' })).status, 412);
  assert.is((await ask({ 'if-match': etag })).status, 200);
  assert.is((await ask({ range: 'bytes=0-9', 'if-range': etag })).status, 206);
  assert.is((await ask({ range: 'bytes=0-9', 'if-range': `W/${etag}` })).status, 200);
  assert.is((await ask({ range: 'bytes=0-9', 'if-range': '"other"' })).status, 200);
  assert.is((await ask({ range: 'bytes=0-9', 'if-range': 'Sat, 21 Nov 2026 00:00:00 GMT' })).status, 200);
  const beyond = await ask({ range: 'bytes=99999999-' });
  assert.equal(
    [beyond.status, beyond.headers.get('content-range')],
    [416, `bytes */${(await store.head('r1/alpha-1.0-k1.tar.gz', { signal }))?.size}`],
  );
});

test('several ranges come as parts that name their places, in the order that was asked for', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const whole = Buffer.from(await (await fetch(server.url + FILE)).arrayBuffer());
  const answer = await fetch(server.url + FILE, { headers: { range: 'bytes=1000000-1400000,0-4,-3' } });
  assert.is(answer.status, 206);
  const [, boundary = ''] = /boundary=(\S+)$/.exec(answer.headers.get('content-type') ?? '') ?? [];
  const body = Buffer.from(await answer.arrayBuffer());
  assert.is(Number(answer.headers.get('content-length')), body.byteLength);
  const size = whole.byteLength;
  const part = (first: number, last: number): Buffer =>
    Buffer.concat([
      Buffer.from(
        `\r\n--${boundary}\r\nContent-Type: application/gzip\r\nContent-Range: bytes ${first}-${last}/${size}\r\n\r\n`,
      ),
      whole.subarray(first, last + 1),
    ]);
  const expected = [
    part(1_000_000, 1_400_000),
    part(0, 4),
    part(size - 3, size - 1),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ];
  assert.ok(body.equals(Buffer.concat(expected)));
});

test.run();
