import { createServer, type AddressInfo, type Socket } from 'node:net';
import { CurlewError } from '../../../src/core/errors.ts';
import { download, type DownloadRequest } from '../../../src/platform/http/download.ts';
import type { Http } from '../../../src/platform/http/http.ts';
import * as assert from '../../support/assert.ts';
import { collector, quickHttp } from '../../support/client.ts';
import { answers, endsShort, ignoresRange, neverEnds, redirects, resetsAtHalf } from '../../support/faults.ts';
import { binaryLike } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('net/large-bodies');
const BODY = binaryLike(5_000_000, 'bulk', 1);
const SIZE = BODY.byteLength;

async function fetchTo(
  http: Http,
  url: string,
  signal: AbortSignal,
  more: Partial<DownloadRequest> = {},
): Promise<Buffer> {
  const { write, body } = collector();
  await download(http, { doing: 'fetch it', url, write, expectedSize: SIZE, ...more }, { signal });
  return body();
}

/** A server that sends these bytes to whoever connects, and ends the connection. */
async function rawServer(
  ...parts: readonly (string | Uint8Array)[]
): Promise<AsyncDisposable & { url: string; asked: string[] }> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (data) => {
      asked.push(data.toString('latin1'));
      for (const part of parts) socket.write(part);
      socket.end();
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`,
    asked,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

for (const [what, fault] of [
  ['arrives whole', undefined],
  ['that resets at half goes on', resetsAtHalf({ times: 2 })],
  ['that ends short goes on', endsShort({ times: 1 })],
  ['after 503 is asked again', answers({ status: 503, body: 'later' }, { times: 2 })],
] as const) {
  test(`a large body ${what}`, async ({ signal }) => {
    await using server = await serveFiles({ a: BODY }, { faults: fault === undefined ? [] : [fault] });
    await using http = await quickHttp();
    assert.ok((await fetchTo(http, `${server.url}/a`, signal)).equals(BODY));
  });
}

test('it goes on from any byte, also past a server that ignores Range', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using deaf = await serveFiles({ a: BODY }, { faults: [ignoresRange(BODY)] });
  await using http = await quickHttp();
  for (const { url } of [server, deaf]) {
    assert.ok((await fetchTo(http, `${url}/a`, signal, { from: 1_234_567 })).equals(BODY.subarray(1_234_567)));
  }
});

test('redirects are followed, and secrets stay behind', async ({ signal }) => {
  await using target = await serveFiles({ a: BODY });
  await using server = await serveFiles({}, { faults: [redirects(`http://localhost:${target.port}/a`)] });
  await using http = await quickHttp();
  const headers = { authorization: 'Bearer canary' };
  assert.ok((await fetchTo(http, server.url, signal, { headers })).equals(BODY));
  assert.is(server.log[0]?.headers['authorization'], 'Bearer canary');
  assert.is(target.log[0]?.headers['authorization'], undefined);
});

test('a refusal comes with the words of the server', async ({ signal }) => {
  await using server = await serveFiles({});
  await using http = await quickHttp();
  await assert.rejectsWith(fetchTo(http, `${server.url}/none`, signal), 'NOT_FOUND', /no such file/);
  assert.is(server.log.length, 1);
});

test('a slow writer has the bytes to itself until it is done, and the last of them too', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  const { write, body } = collector();
  let writing = 0;
  const slow = async (chunk: Uint8Array): Promise<void> => {
    writing += 1;
    assert.is(writing, 1);
    for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    write(chunk);
    writing -= 1;
  };
  await fetchTo(http, `${server.url}/a`, signal, { write: slow });
  assert.is(writing, 0);
  assert.ok(body().equals(BODY));
});

test('nothing is written beside a writer that is still at work when the connection breaks', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY }, { faults: [resetsAtHalf({ times: 2 })] });
  await using http = await quickHttp();
  const { write, body } = collector();
  let writing = 0;
  const slow = async (chunk: Uint8Array): Promise<void> => {
    writing += 1;
    assert.is(writing, 1);
    await new Promise((resolve) => setTimeout(resolve, 2));
    write(chunk);
    writing -= 1;
  };
  await fetchTo(http, `${server.url}/a`, signal, { write: slow });
  assert.ok(body().equals(BODY));
});

test('a writer that fails, at once or later, ends it with its own error; an abort with its reason', async ({
  signal,
}) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  const full = new CurlewError('NO_SPACE', 'full');
  const writers = [
    (): undefined => {
      throw full;
    },
    async (): Promise<void> => {
      throw full;
    },
  ];
  for (const write of writers)
    await assert.rejectsWith(fetchTo(http, `${server.url}/a`, signal, { write }), 'NO_SPACE');
  const stop = new AbortController();
  const write = (): undefined => {
    stop.abort(new CurlewError('CANCELLED', 'cancelled'));
    return undefined;
  };
  await assert.rejectsWith(fetchTo(http, `${server.url}/a`, stop.signal, { write }), 'CANCELLED');
});

test('an endless body and one of another length are refused', async ({ signal }) => {
  await using endless = await serveFiles({ a: '' }, { faults: [neverEnds()] });
  await using other = await serveFiles({ a: BODY.subarray(1) });
  await using http = await quickHttp();
  const { write, body } = collector();
  await assert.rejectsWith(fetchTo(http, `${endless.url}/a`, signal, { write }), 'FETCH_FAILED', /returned more than/);
  assert.ok(body().byteLength <= SIZE);
  await assert.rejectsWith(fetchTo(http, `${other.url}/a`, signal), 'FETCH_FAILED', /expected 5000000/);
});

test("bytes beyond the announced length are nobody's", async ({ signal }) => {
  await using server = await rawServer(
    `HTTP/1.1 200 OK\r\ncontent-length: ${SIZE}\r\n\r\n`,
    BODY,
    'HTTP/1.1 200 OK\r\n\r\n',
  );
  await using http = await quickHttp();
  assert.ok((await fetchTo(http, server.url, signal)).equals(BODY));
});

test('a head in pieces is put together', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using pieces = await rawServer('HTTP/1.1 200 ', 'OK\r\ncontent-', `length: ${SIZE}\r`, '\n\r', '\n', BODY);
  await using http = await quickHttp();
  for (const url of [`${server.url}/a`, pieces.url]) assert.ok((await fetchTo(http, url, signal)).equals(BODY));
});

test('a large body in chunks arrives whole', async ({ signal }) => {
  await using chunked = await rawServer(
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
    `${SIZE.toString(16)}\r\n`,
    BODY,
    '\r\n0\r\n\r\n',
  );
  await using http = await quickHttp();
  assert.ok((await fetchTo(http, chunked.url, signal)).equals(BODY));
  assert.is(chunked.asked.length, 1);
  assert.match(chunked.asked[0] ?? '', /^GET \/x HTTP\/1\.1\r\n/);
});

test('a peer that speaks no HTTP, or never ends its head, is FETCH_FAILED', async ({ signal }) => {
  await using http = await quickHttp();
  for (const text of ['SSH-2.0-x\r\n\r\n', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`, '']) {
    await using server = await rawServer(text);
    await assert.rejectsWith(fetchTo(http, server.url, signal), 'FETCH_FAILED');
  }
});

test('a server that stands still runs into the limits', async ({ signal }) => {
  const timeouts = { connectMs: 1000, headersMs: 50, idleMs: 50 };
  await using http = await quickHttp({ timeouts, retry: { attempts: 2, baseMs: 1, capMs: 1 } });
  await using silent = await serveFiles({}, { faults: [answers({ status: 200, sending: 'never' })] });
  await assert.rejectsWith(fetchTo(http, silent.url, signal), 'FETCH_FAILED', /: no response in time$/);
});

const heads: readonly (readonly [what: string, text: string, isRead: boolean])[] = [
  ['plain', 'HTTP/1.1 200 OK\r\nContent-Length: 5', true],
  ['without a reason', 'HTTP/1.1 200\r\ncontent-length: 5', true],
  ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 5', true],
  ['behind one that is not final', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5', true],
  ['with two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6', false],
  ['with a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -5', false],
  ['with a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked', false],
  ['with a bare line feed', 'HTTP/1.1 200 OK\r\ncontent-length: 5\nx: y', false],
  ['with a space before the colon', 'HTTP/1.1 200 OK\r\ncontent-length : 5', false],
  ['with NUL', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: \u0000', false],
];
for (const [what, text, isRead] of heads) {
  test(`a head ${what} is ${isRead ? 'read' : 'refused'}`, async ({ signal }) => {
    await using server = await rawServer(`${text}\r\n\r\nhello`);
    await using http = await quickHttp({ retry: { attempts: 1, baseMs: 1, capMs: 1 } });
    const asking = http.small({ doing: 'ask', url: server.url }, { limit: 100, signal });
    if (isRead) assert.is(Buffer.from((await asking).body).toString(), 'hello');
    else await assert.rejectsWith(asking, 'FETCH_FAILED', /not valid HTTP/);
  });
}

test.run();
