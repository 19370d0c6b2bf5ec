import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { download } from '../../../src/platform/http/download.ts';
import type { Http } from '../../../src/platform/http/http.ts';
import { paced, watchRate } from '../../../src/platform/http/pace.ts';
import * as assert from '../../support/assert.ts';
import { collect } from '../../support/bytes.ts';
import { collector, quickHttp } from '../../support/client.ts';
import { answers, drips } from '../../support/faults.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('net/pace', { timeoutMs: 60_000 });

const MIB = 1 << 20;
const BODY = Buffer.alloc(2 * MIB, 'x');
/** A client that waits for nobody else than for what drips. */
const minRate = { bytes: 1000, ms: 200 };
const DRIPPED = /127\.0\.0\.1:\d+: the server sent \d+ bytes in 0\.2 s, at least 5000 bytes per second are required/;

async function watching(more: Parameters<typeof quickHttp>[0] = {}): Promise<Http> {
  return quickHttp({ timeouts: { minRate, idleMs: 30_000, headersMs: 30_000 }, ...more });
}

for (const [what, expectedSize] of [
  ['of unknown size', undefined],
  ['that is large', BODY.byteLength],
] as const) {
  test(`a body ${what} that drips is given up after two tries, naming host and rate`, async ({ signal }) => {
    await using server = await serveFiles({ a: BODY }, { faults: [drips()] });
    await using http = await watching();
    const request = { doing: 'fetch it', url: `${server.url}/a`, write: () => undefined, expectedSize };
    const { message } = await assert.rejectsWith(download(http, request, { signal }), 'FETCH_FAILED', DRIPPED);
    assert.match(message, /after \d+ of 2097152 bytes, tried 2 times/);
    assert.is(server.log.length, 2);
  });
}

test('a body that drips once goes on where it was', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY }, { faults: [drips({ times: 1 })] });
  await using http = await watching();
  const { write, body } = collector();
  await download(http, { doing: 'fetch it', url: `${server.url}/a`, write }, { signal });
  assert.ok(body().equals(BODY));
  assert.match(String(server.log[1]?.headers['range']), /^bytes=[1-9]\d*-$/);
});

test('a small body that drips is given up', async ({ signal }) => {
  await using server = await serveFiles({ a: 'x'.repeat(10_000) }, { faults: [drips()] });
  await using http = await watching();
  const request = { doing: 'ask', url: `${server.url}/a` };
  await assert.rejectsWith(http.small(request, { limit: MIB, signal }), 'FETCH_FAILED', DRIPPED);
  assert.is(server.log.length, 2);
});

test('a small request has so much time as a whole, and is not asked again', async ({ signal }) => {
  await using server = await serveFiles({ a: 'x'.repeat(10_000) }, { faults: [drips()] });
  await using http = await quickHttp({ timeouts: { smallMs: 300 } });
  const request = { doing: 'ask', url: `${server.url}/a` };
  const { hint } = await assert.rejectsWith(
    http.small(request, { limit: MIB, signal }),
    'FETCH_FAILED',
    /127\.0\.0\.1:\d+: the response was not complete after 0\.3 s \(\d+ bytes received\)/,
  );
  assert.match(hint ?? '', /too slow/);
  assert.is(server.log.length, 1);
});

test('a body that stands still at the same byte is asked for twice, not as often as one that breaks', async ({
  signal,
}) => {
  const promises = answers({ status: 200, headers: { 'content-length': '1000' }, body: 'x', sending: { haltAt: 1 } });
  await using server = await serveFiles({}, { faults: [promises] });
  await using http = await quickHttp({ timeouts: { idleMs: 100 } });
  const request = { doing: 'fetch it', url: server.url, write: () => undefined };
  await assert.rejectsWith(download(http, request, { signal }), 'FETCH_FAILED', /stalled .*, after 1 of 1000 bytes/);
  assert.is(server.log.length, 2);
  await assert.rejectsWith(http.small(request, { limit: MIB, signal }), 'FETCH_FAILED', /stalled/);
  assert.is(server.log.length, 4);
});

/** A server whose answer begins with this and goes on with that, again and again. */
async function goesOn(first: string, again: string): Promise<AsyncDisposable & { readonly url: string }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.write(first);
    const timer = setInterval(() => socket.write(again), 10);
    socket.on('close', () => clearInterval(timer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n';

for (const [what, first, again] of [
  ['a head that drips', 'HTTP/1.1 200 OK\r\nx: ', 'y'],
  ['a head behind answers that are not final', HINTS, HINTS],
] as const) {
  for (const expectedSize of [undefined, BODY.byteLength]) {
    test(`${what} is late, for ${expectedSize ?? 'an unknown number of'} bytes`, async ({ signal }) => {
      await using server = await goesOn(first, again);
      const retry = { attempts: 1, baseMs: 1, capMs: 1 };
      await using http = await quickHttp({ timeouts: { headersMs: 300 }, retry });
      const request = { doing: 'fetch it', url: server.url, write: () => undefined, expectedSize };
      const error = await assert.rejectsWith(download(http, request, { signal }), 'FETCH_FAILED');
      assert.match(error.message, /no response in time/);
    });
  }
}

test('time stands still while the writer has the turn', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  const rate = { bytes: 1, ms: 200 };
  await using http = await quickHttp({ timeouts: { minRate: rate } });
  const { write, body } = collector();
  let first = true;
  const request = {
    doing: 'fetch it',
    url: `${server.url}/a`,
    expectedSize: BODY.byteLength,
    write: async (chunk: Uint8Array): Promise<void> => {
      write(chunk);
      if (!first) return;
      first = false;
      // Until another watch has found that nothing comes, twice.
      for (let times = 0; times < 2; times += 1) await new Promise<Error>((resolve) => void watchRate(rate, resolve));
    },
  };
  await download(http, request, { signal });
  assert.ok(body().equals(BODY));
  assert.is(server.log.length, 1);
});

test('an object in S3 that drips is given up as well', async () => {
  const dripping = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      yield Buffer.alloc(0);
    }
  };
  const body = Readable.from(dripping(), { objectMode: true });
  const failure = await collect(paced(body, { idleMs: 30_000, minRate })).then(() => '', String);
  assert.match(failure, /at least 5000 bytes per second/);
});

test.run();
