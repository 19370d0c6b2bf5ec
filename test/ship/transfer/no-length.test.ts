/** Files at servers that tell no length: fetched in one stream if their digest is known. */
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { patterned } from '../../support/store-conformance.ts';
import { largePackage, pullTo, type PullResult, type TestPull } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { serveFolder, type Fault } from '../../support/web-server.ts';

const test = suite('transfer: a file without a length');
const BODY = patterned(1_000_000);
const SHA256 = digestOf(BODY);

interface Unmeasured extends AsyncDisposable {
  readonly address: string;
  /** Ranges of the requests for the body: `bytes=5-` */
  readonly asked: readonly string[];
}

/** Sends the body in chunks. `cutAt`: the first responses end after so many bytes. `parts`: Range is honored. */
async function unmeasured(
  body: Uint8Array,
  { cutAt = [], parts = false }: { readonly cutAt?: readonly number[]; readonly parts?: boolean } = {},
): Promise<Unmeasured> {
  const asked: string[] = [];
  const server = createServer(({ method, headers: { range = '' } }, response) => {
    const from = parts ? Number(/\d+/.exec(range)?.[0] ?? 0) : 0;
    const isPart = parts && range !== '';
    const headers = { 'transfer-encoding': 'chunked', etag: '"1"' };
    response.writeHead(
      isPart ? 206 : 200,
      isPart ? { ...headers, 'content-range': `bytes ${from}-${body.byteLength - 1}/*` } : headers,
    );
    if (method === 'HEAD' || range === 'bytes=0-0') return void response.end();
    asked.push(range);
    const cut = cutAt[asked.length - 1];
    if (cut === undefined) response.end(body.subarray(from));
    else response.write(body.subarray(from, cut), () => response.socket?.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/p`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function pulled(file: string, { address }: Unmeasured, options: TestPull): Promise<PullResult> {
  const result = await pullTo(file, [address], { sha256: SHA256, ...options });
  assert.ok((await readFile(file)).equals(BODY));
  return result;
}

test('it is fetched and verified, and is there for the next run', async ({ signal }) => {
  await using box = await tree();
  await using server = await unmeasured(BODY);
  const { size, fetched, contents, from } = await pulled(box.at('p'), server, { signal });
  assert.equal([size, fetched, contents, from], [BODY.byteLength, BODY.byteLength, undefined, [server.address]]);
  assert.equal(await readdir(box.path), ['p']);
  assert.is((await pulled(box.at('p'), server, { signal })).fetched, 0);
  assert.is(server.asked.length, 1);
});

test('the contents of a package are known when it is complete', async ({ signal }) => {
  const { bytes, plan } = largePackage();
  await using box = await tree();
  await using server = await unmeasured(bytes);
  const { contents } = await pullTo(box.at('p'), [server.address], { sha256: digestOf(bytes), signal });
  assert.is(contents, plan.index.tocDigest);
});

for (const parts of [true, false]) {
  const how = parts ? 'by range' : 'past what is there';
  test(`a stream that breaks off goes on ${how}, in this run or the next`, async ({ signal }) => {
    await using box = await tree();
    await using server = await unmeasured(BODY, { cutAt: [300_000], parts });
    await pulled(box.at('p'), server, { signal });
    await using broken = await unmeasured(BODY, { cutAt: Array.from({ length: 50 }, () => 300_000), parts });
    await assert.rejectsWith(
      pulled(box.at('q'), broken, { signal }),
      'FETCH_FAILED',
      /ended after \d+ of unknown bytes/,
    );
    await using whole = await unmeasured(BODY, { parts });
    await pulled(box.at('q'), whole, { signal });
    for (const { asked } of [server, whole]) assert.match(asked.at(-1) ?? '', /^bytes=[1-9]\d*-$/);
  });
}

test('wrong bytes, also of an earlier run, get no name, and do not stay', async ({ signal }) => {
  await using box = await tree({ 'p.partial': Buffer.alloc(400_000, 'x') });
  await using right = await unmeasured(BODY);
  await using wrong = await unmeasured(patterned(1_000_000, 7));
  await assert.rejectsWith(pulled(box.at('p'), wrong, { signal }), 'DIGEST_MISMATCH', /has the sha256 sha256:/);
  assert.equal(await readdir(box.path), []);
  await pulled(box.at('p'), right, { signal });
});

test('more bytes than the file is known to have end the transfer', async ({ signal }) => {
  await using box = await tree();
  await using server = await unmeasured(patterned(4_000_000));
  const pulling = pulled(box.at('p'), server, { size: BODY.byteLength, signal });
  await assert.rejectsWith(pulling, 'FETCH_FAILED', /returned more than 1000000 bytes/);
});

test('without a digest, or with a signature to verify, it is refused with what to do', async ({ signal }) => {
  await using box = await tree();
  await using server = await unmeasured(BODY);
  const plain = await assert.rejectsWith(
    pullTo(box.at('p'), [server.address], { signal }),
    'FETCH_FAILED',
    /no Content-Length/,
  );
  assert.match(plain.hint ?? '', '--sha256 HEX');
  const check = async (): Promise<void> => undefined;
  const signed = await assert.rejectsWith(pulled(box.at('p'), server, { check, signal }), 'FETCH_FAILED');
  assert.match(signed.hint ?? '', 'fetch it from another place');
  assert.is(server.asked.length, 0);
});

test('another file of the name stays, unless it may be replaced', async ({ signal }) => {
  await using box = await tree({ p: 'other' });
  await using server = await unmeasured(BODY);
  await assert.rejectsWith(pulled(box.at('p'), server, { signal }), 'FILE_EXISTS', /a different sha256/);
  assert.is(server.asked.length, 0);
  await pulled(box.at('p'), server, { force: true, signal });
});

test('a mirror that tells the length is preferred, and what it has sent counts', async ({ signal }) => {
  await using box = await tree({ 'store/p': BODY });
  await using server = await unmeasured(BODY, { parts: true });
  await using good = await serveFolder(box.at('store'));
  const mirrors = [server.address, `${good.url}/p`];
  assert.equal((await pullTo(box.at('one'), mirrors, { sha256: SHA256, signal })).from, [`${good.url}/p`]);
  assert.is(server.asked.length, 0);
  const breaks: Fault = ({ headers }, regular) => {
    const from = Number(/\d+/.exec(String(headers['range'] ?? ''))?.[0] ?? Infinity);
    return from > 900_000 ? undefined : from > 0 ? { status: 503 } : { ...regular, sending: { resetAt: 400_000 } };
  };
  await using broken = await serveFolder(box.at('store'), { faults: [breaks] });
  const { from } = await pullTo(box.at('two'), [server.address, `${broken.url}/p`], {
    sha256: SHA256,
    connections: 1,
    signal,
  });
  assert.ok((await readFile(box.at('two'))).equals(BODY));
  assert.is(from.at(-1), server.address);
  assert.match(server.asked.join(' '), /^bytes=[1-9]\d*-$/);
});

test.run();
