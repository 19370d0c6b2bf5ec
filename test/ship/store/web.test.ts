import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { readCatalog } from '../../../src/ship/store/read-catalog.ts';
import { openStore } from '../../../src/ship/store/open.ts';
import { openStoreSource } from '../../../src/ship/store/source.ts';
import { createWebStore, webObject } from '../../../src/ship/store/web.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages } from '../../support/bundles.ts';
import { collect } from '../../support/bytes.ts';
import { quickHttp } from '../../support/client.ts';
import { answers, endsShort, ignoresRange, resetsAtHalf } from '../../support/faults.ts';
import { patterned } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { serveFolder, startServer } from '../../support/web-server.ts';

const test = suite('ship/store/web');
const BODY = patterned(3_000_000);

test('the catalog and the packages of a store are read through a web server', async ({ signal }) => {
  await using box = await tree();
  await publishTestPackages(box, [{ name: 'aaa', version: '1.0.0', files: [{ path: 'x', data: 'x' }] }], signal);
  await using server = await serveFolder(box.path);
  await using http = await quickHttp();
  const store = await openStore(`${server.url}/store/`, { cwd: '/', create: false, http: async () => http, signal });
  assert.is(store.address, `${server.url}/store`);
  const catalog = await readCatalog(store, { release: undefined, signal });
  assert.is(catalog.release, 'r1');
  const source = await openStoreSource(store, 'r1/aaa-1.0.0.tar.gz', { signal });
  assert.is((await collect(source.read(0, source.size, { signal }))).byteLength, source.size);
  assert.is(await store.head('r1/bbb-1.0.0.tar.gz', { signal }), undefined);
  await assert.rejectsWith(
    store.get('r1/bbb-1.0.0.tar.gz', { signal }),
    'NOT_FOUND',
    /r1\/bbb-1\.0\.0\.tar\.gz does not exist/,
  );
});

for (const [title, fault] of [
  ['resets connections', resetsAtHalf({ times: 3 })],
  ['ends answers early', endsShort({ times: 2 })],
  ['ignores Range', ignoresRange(BODY)],
] as const) {
  test(`a range arrives whole from a server that ${title}`, async ({ signal }) => {
    await using box = await tree({ a: BODY });
    await using server = await serveFolder(box.path, { faults: [fault] });
    await using http = await quickHttp();
    const source = await openStoreSource(createWebStore(server.url, http), 'a', { signal });
    for (const [offset, length] of [
      [1000, 2_000_000],
      [0, 51],
      [2_999_949, 51],
      [5, 0],
    ] as const) {
      const bytes = await collect(source.read(offset, length, { signal }));
      assert.ok(bytes.equals(BODY.subarray(offset, offset + length)), `${offset} ${length}`);
    }
  });
}

test('chunks are used after the next one has come, and a reader may leave early', async ({ signal }) => {
  await using box = await tree({ a: BODY });
  await using server = await serveFolder(box.path);
  await using http = await quickHttp();
  const { body } = await createWebStore(server.url, http).get('a', { signal });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
    if (chunks.length === 3) break;
  }
  const read = Buffer.concat(chunks);
  assert.ok(read.equals(BODY.subarray(0, read.byteLength)));
});

test('an object that has changed is a conflict, before and between reads', async ({ signal }) => {
  await using box = await tree({ a: BODY });
  await using server = await serveFolder(box.path);
  await using http = await quickHttp();
  const store = createWebStore(server.url, http);
  const source = await openStoreSource(store, 'a', { signal });
  await writeFile(box.at('a'), patterned(3_000_000, 2));
  await assert.rejectsWith(collect(source.read(0, 1000, { signal })), 'STORE_CONFLICT', /has changed/);
  await assert.rejectsWith(store.get('a', { ifMatch: source.object.etag, signal }), 'STORE_CONFLICT');
  await assert.rejectsWith(store.get('a', { range: { offset: 0, length: 4_000_000 }, signal }), 'STORE_CONFLICT');
});

test('without an entity tag an object is told by its length and date', async ({ signal }) => {
  const headers = { 'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT' };
  await using server = await startServer(() => ({ status: 200, headers, body: 'hello' }));
  await using http = await quickHttp();
  const source = await openStoreSource(createWebStore(server.url, http), 'a', { signal });
  assert.is((await collect(source.read(1, 3, { signal }))).toString(), 'ell');
});

test('the address of one object keeps its query, which no message repeats', async ({ signal }) => {
  await using box = await tree({ 'd/a b.tar.gz': 'hello' });
  await using server = await serveFolder(box.path, { faults: [answers({ status: 403 }, { path: /sig=wrong/ })] });
  await using http = await quickHttp();
  const { store, key } = webObject(`${server.url}/d/a%20b.tar.gz?sig=topsecret`, http);
  assert.is(key, 'a b.tar.gz');
  assert.is((await collect((await store.get(key, { signal })).body)).toString(), 'hello');
  assert.match(server.log[0]?.path ?? '', 'sig=topsecret');
  assert.not.match(store.address, 'topsecret');
  const refused = webObject(`${server.url}/d/a%20b.tar.gz?sig=wrong-secret`, http);
  const error = await assert.rejectsWith(refused.store.head(refused.key, { signal }), 'AUTH_FAILED');
  assert.not.match(error.message, 'wrong-secret');
});

test('plain http to another machine, a query in a store, and writing are refused', async ({ signal }) => {
  await using http = await quickHttp();
  const far = createWebStore('http://packages.invalid/dist', http);
  const error = await assert.rejectsWith(far.head('VERSION', { signal }), 'FETCH_FAILED', /plain http/);
  assert.match(error.hint ?? '', '--allow-http packages.invalid');
  assert.throwsWith(() => createWebStore('https://packages.invalid/dist?x=1', http), 'USAGE');
  assert.throwsWith(() => createWebStore('https://', http), 'USAGE');
  await assert.rejectsWith(far.put('a', Buffer.from('a'), { signal }), 'UNSUPPORTED', /is a read-only store/);
  await assert.rejectsWith(far.delete('a', { signal }), 'UNSUPPORTED');
  await assert.rejectsWith(collect(far.list('', { signal }) as never), 'UNSUPPORTED', /cannot list/);
});

test('a server that does not say how long an object is cannot be read from', async ({ signal }) => {
  await using server = await startServer(() => ({ status: 200, headers: { 'content-length': 'x' }, body: 'hello' }));
  await using http = await quickHttp();
  await assert.rejectsWith(createWebStore(server.url, http).head('a', { signal }), 'FETCH_FAILED');
});

test('a HEAD without Content-Length is answered by a range', async ({ signal }) => {
  const server = createServer((asked, response) => {
    if (asked.method === 'HEAD') response.writeHead(200, { 'transfer-encoding': 'chunked' }).end();
    else response.writeHead(206, { 'content-range': 'bytes 0-0/5', 'content-length': 1 }).end('h');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  await using http = await quickHttp();
  const { port } = server.address() as AddressInfo;
  assert.is((await createWebStore(`http://127.0.0.1:${port}`, http).head('a', { signal }))?.size, 5);
  server.closeAllConnections();
  server.close();
});

test.run();
