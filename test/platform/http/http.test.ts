import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createHttp, succeeded, type Http } from '../../../src/platform/http/http.ts';
import type { HttpRequest } from '../../../src/platform/http/message.ts';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { quickHttp } from '../../support/client.ts';
import { answers, neverEnds, redirects, resetsAtHalf } from '../../support/faults.ts';
import { startProxy } from '../../support/proxy-server.ts';
import { startSilent } from '../../support/silent-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';
import { serveFiles, startServer } from '../../support/web-server.ts';

const test = suite('net/http');
const LIMIT = 1000;

async function get(http: Http, url: string, signal: AbortSignal, more: Partial<HttpRequest> = {}): Promise<string> {
  const request: HttpRequest = { doing: 'fetch it', url, ...more };
  return Buffer.from(succeeded(http, request, await http.small(request, { limit: LIMIT, signal })).body).toString();
}

interface Raw extends AsyncDisposable {
  readonly url: string;
}

/** Calls back with what comes over a connection, for the how manieth time. */
async function startRaw(asked: (socket: Socket, request: string, times: number) => void): Promise<Raw> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let times = 0;
    sockets.add(socket);
    socket.on('error', () => undefined).on('data', (part) => asked(socket, String(part), (times += 1)));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('a small body comes back whole, asked for without compression and under our name', async ({ signal }) => {
  await using server = await serveFiles({ a: 'hello' });
  await using http = await quickHttp({ userAgent: 'curlew/1' });
  assert.is(await get(http, `${server.url}/a`, signal), 'hello');
  assert.is(server.log[0]?.headers['user-agent'], 'curlew/1');
  assert.is(server.log[0]?.headers['accept-encoding'], 'identity');
});

test('a server that requests a long wait gets no second request, and the message names the wait', async ({
  signal,
}) => {
  const tomorrow = answers({ status: 429, headers: { 'retry-after': '86400' }, body: 'slow down' });
  await using server = await serveFiles({}, { faults: [tomorrow] });
  await using http = await createHttp({ env: {} });
  const asked = get(http, `${server.url}/a`, signal);
  const error = await assert.rejectsWith(asked, 'FETCH_FAILED', /429 \(slow down\) and asks to wait 24 h$/);
  assert.match(error.hint ?? '', 'after 24 h');
  assert.is(server.log.length, 1);
});

const refusals = [
  [401, 'AUTH_FAILED'],
  [403, 'AUTH_FAILED'],
  [404, 'NOT_FOUND'],
  [410, 'NOT_FOUND'],
  [418, 'FETCH_FAILED'],
  [501, 'FETCH_FAILED'],
  [505, 'FETCH_FAILED'],
] as const;
for (const [status, code] of refusals) {
  test(`${status} is ${code}, asked once, with the server's words and without the query`, async ({ signal }) => {
    await using server = await serveFiles({}, { faults: [answers({ status, body: 'go away\nsecond line' })] });
    await using http = await quickHttp();
    const error = await assert.rejectsWith(get(http, `${server.url}/a?token=canary-1`, signal), code, /go away/);
    assert.match(
      error.message,
      new RegExp(`^cannot fetch it: ${server.url}/a returned ${status} \\(go away; second line\\)$`),
    );
    assert.is(server.log.length, 1);
  });
}

for (const status of [408, 429, 500, 502, 503, 504, 520, 522, 524, 529]) {
  test(`${status} with Retry-After is asked again`, async ({ signal }) => {
    const busy = answers({ status, headers: { 'retry-after': '1' } }, { times: 2 });
    await using server = await serveFiles({ a: 'hello' }, { faults: [busy] });
    await using http = await quickHttp();
    assert.is(await get(http, `${server.url}/a`, signal), 'hello');
    assert.is(server.log.length, 3);
  });
}

test('a server that stays busy is given up after the last attempt', async ({ signal }) => {
  await using server = await serveFiles({}, { faults: [answers({ status: 503 })] });
  await using http = await quickHttp();
  const error = await assert.rejectsWith(get(http, server.url, signal), 'FETCH_FAILED', /returned 503/);
  assert.match(error.hint ?? '', /again later/);
  assert.is(server.log.length, 4);
});

test('a reset connection is tried again', async ({ signal }) => {
  await using server = await serveFiles({ a: 'hello' }, { faults: [resetsAtHalf({ times: 2 })] });
  await using http = await quickHttp();
  assert.is(await get(http, `${server.url}/a`, signal), 'hello');
});

test('a body that announces too much is refused unread, one that never ends is cut', async ({ signal }) => {
  await using large = await serveFiles({ a: 'x'.repeat(LIMIT + 1) });
  await using endless = await serveFiles({ a: '' }, { faults: [neverEnds()] });
  await using http = await quickHttp();
  await assert.rejectsWith(get(http, `${large.url}/a`, signal), 'FETCH_FAILED', /longer than 1000 bytes/);
  await assert.rejectsWith(get(http, `${endless.url}/a`, signal), 'FETCH_FAILED', /longer than 1000 bytes/);
  assert.is(endless.log.length, 1);
});

test('a redirect loop ends after ten', async ({ signal }) => {
  await using server = await serveFiles({}, { faults: [redirects('/again')] });
  await using http = await quickHttp();
  await assert.rejectsWith(get(http, server.url, signal), 'FETCH_FAILED', /more than 10 redirects/);
  assert.is(server.log.length, 11);
});

test('secrets stay with scheme, host and port through redirects, and do not come back', async ({ signal }) => {
  await using origin = await startServer(({ path }) =>
    path === '/end' ? { status: 200, body: 'end' } : { status: 307, headers: { location: there() } },
  );
  const there = (): string => `http://localhost:${other.port}/x`;
  await using other = await serveFiles({}, { faults: [redirects(() => `${origin.url}/end`)] });
  await using http = await quickHttp();
  const headers = { Authorization: 'Bearer canary', cookie: 'canary', 'x-mine': 'canary', accept: 'text/plain' };
  assert.is(await get(http, `${origin.url}/begin`, signal, { headers }), 'end');
  const [first, last] = origin.log;
  assert.is(first?.headers['authorization'], 'Bearer canary');
  assert.is(other.log[0]?.headers['accept'], 'text/plain');
  assert.not.match(JSON.stringify([other.log, last]), /canary/);
});

test('user info of an address goes to its own host only, and into no message', async ({ signal }) => {
  await using other = await serveFiles({});
  await using server = await serveFiles(
    {},
    { faults: [redirects(() => `http://me:canary-2@localhost:${other.port}/gone`)] },
  );
  await using http = await quickHttp();
  const url = `http://user:canary-1@127.0.0.1:${server.port}/a`;
  const error = await assert.rejectsWith(get(http, url, signal), 'NOT_FOUND');
  assert.is(server.log[0]?.headers['authorization'], `Basic ${Buffer.from('user:canary-1').toString('base64')}`);
  assert.is(other.log[0]?.headers['authorization'], undefined);
  assert.not.match(error.message, /canary/);
});

for (const [to, what] of [
  ['ftp://127.0.0.1/', /neither https nor http/],
  ['http://plain.test/', /plain http to plain\.test is not allowed/],
  ['http://[', /not a valid URL/],
] as const) {
  test(`a redirect to ${to} is refused`, async ({ signal }) => {
    await using server = await serveFiles({}, { faults: [redirects(to)] });
    await using http = await quickHttp();
    await assert.rejectsWith(get(http, server.url, signal), 'FETCH_FAILED', what);
  });
}

test('a form with a token is never sent again to where a redirect points', async ({ signal }) => {
  await using server = await serveFiles({}, { faults: [redirects('/other')] });
  await using http = await quickHttp();
  const form = { method: 'POST', body: 'refresh_token=canary' } as const;
  await assert.rejectsWith(get(http, server.url, signal, form), 'FETCH_FAILED', /returned 307/);
  assert.is(server.log.length, 1);
});

test('what a server echoes of our secrets is not repeated', async ({ signal }) => {
  await using server = await startServer(({ headers }) => {
    const sent = String(headers['authorization']);
    const [, plain = ''] = sent.split(' ');
    return { status: 403, body: `you sent ${sent}, that is ${Buffer.from(plain, 'base64').toString()}` };
  });
  await using http = await quickHttp();
  const headers = { authorization: `Basic ${Buffer.from('user:canary-word').toString('base64')}` };
  const error = await assert.rejectsWith(get(http, server.url, signal, { headers }), 'AUTH_FAILED', /you sent/);
  assert.not.match(error.message, /canary|dXNlcjpj/);
});

test('nobody listening is FETCH_FAILED after the last attempt', async ({ signal }) => {
  await using http = await quickHttp();
  const closed = createServer().listen(0, '127.0.0.1');
  const { port } = await new Promise<AddressInfo>((resolve) => {
    closed.on('listening', () => resolve(closed.address() as AddressInfo));
  });
  await new Promise((resolve) => closed.close(resolve));
  await assert.rejectsWith(get(http, `http://127.0.0.1:${port}/`, signal), 'FETCH_FAILED', /refused/);
});

test('a head that never comes and a body that stands still run into their limits', async ({ signal }) => {
  const timeouts = { connectMs: 1000, headersMs: 300, idleMs: 300 };
  await using http = await quickHttp({ timeouts, retry: { attempts: 1, baseMs: 1, capMs: 1 } });
  await using silent = await serveFiles({}, { faults: [answers({ status: 200, sending: 'never' })] });
  await assert.rejectsWith(get(http, silent.url, signal), 'FETCH_FAILED', /no response in time/);
  await using stuck = await startSilent('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  await assert.rejectsWith(get(http, `http://127.0.0.1:${stuck.port}/`, signal), 'FETCH_FAILED', /stalled/);
});

test('a head without end is refused', async ({ signal }) => {
  await using server = await serveFiles(
    {},
    { faults: [answers({ status: 200, headers: { x: 'y'.repeat(100_000) } })] },
  );
  await using http = await quickHttp();
  await assert.rejectsWith(get(http, server.url, signal), 'FETCH_FAILED', /response headers are too large/);
});

test('a header that comes several times is joined', async ({ signal }) => {
  await using server = await startRaw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\netag: "a"\r\nx: 1\r\nX: 2\r\netag: "b"\r\n\r\n');
  });
  await using http = await quickHttp();
  const { headers } = await http.small({ doing: 'ask', url: server.url }, { limit: LIMIT, signal });
  assert.equal([headers['x'], headers['etag']], ['1, 2', '"a", "b"']);
});

test('a header that cannot be written is refused at once', async ({ signal }) => {
  await using server = await serveFiles({ a: 'hello' });
  await using http = await quickHttp();
  const headers = { 'x-mine': 'a\nb' };
  await assert.rejectsWith(get(http, `${server.url}/a`, signal, { headers }), 'FETCH_FAILED');
  assert.is(server.log.length, 0);
});

test('what only asks is sent again when an idle connection has gone; a form is not', async ({ signal }) => {
  const asked: string[] = [];
  await using server = await startRaw((socket, request, times) => {
    asked.push(request.slice(0, 4).trim());
    // To the second request of each connection it is as good as gone.
    if (times > 1) socket.destroy();
    else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
  });
  await using http = await quickHttp({ retry: { attempts: 1, baseMs: 1, capMs: 1 } });
  for (const times of [1, 2]) assert.is(await get(http, server.url, signal), 'hello', String(times));
  const form = { method: 'POST', body: 'refresh_token=canary' } as const;
  await assert.rejectsWith(get(http, server.url, signal, form), 'FETCH_FAILED', /reset/);
  assert.equal(asked, ['GET', 'GET', 'GET', 'POST']);
});

test('a server that accepts and does not greet is no connection', async ({ signal }) => {
  await using server = await startRaw(() => undefined);
  const once = { attempts: 1, baseMs: 1, capMs: 1 };
  await using http = await quickHttp({ timeouts: { connectMs: 200 }, retry: once });
  const url = server.url.replace('http:', 'https:');
  await assert.rejectsWith(get(http, url, signal), 'FETCH_FAILED', /connection timed out/);
});

test('an abort ends a waiting request with its reason', async () => {
  await using server = await serveFiles({}, { faults: [answers({ status: 200, sending: 'never' })] });
  await using http = await quickHttp();
  const stop = new AbortController();
  const waiting = get(http, server.url, stop.signal);
  await until(() => server.log.length > 0);
  stop.abort(new Error('stop it'));
  try {
    await waiting;
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'stop it');
  }
});

test('a private authority is trusted when it is named, and only then', async ({ signal }) => {
  const certificate = await makeCertificate();
  await using files = await tree({ 'ca.pem': certificate.ca, 'none.pem': 'nothing' });
  await using server = await serveFiles({ a: 'hello' }, { tls: certificate, name: 'localhost' });
  await using named = await quickHttp({ caFile: files.at('ca.pem') });
  assert.is(await get(named, `${server.url}/a`, signal), 'hello');
  await using byVariable = await quickHttp({ env: { SSL_CERT_FILE: files.at('ca.pem') } });
  assert.is(await get(byVariable, `${server.url}/a`, signal), 'hello');
  await using plain = await quickHttp();
  const error = await assert.rejectsWith(get(plain, `${server.url}/a`, signal), 'FETCH_FAILED');
  assert.match(error.hint ?? '', /--ca-file/);
  assert.is(server.log.length, 2);
  await assert.rejectsWith(quickHttp({ caFile: files.at('none.pem') }), 'FILE_UNUSABLE', /no certificate/);
  await assert.rejectsWith(quickHttp({ caFile: files.at('missing.pem') }), 'FILE_UNUSABLE');
  for (const name of ['none.pem', 'missing.pem']) {
    const quick = quickHttp({ env: { SSL_CERT_FILE: files.at(name) } });
    const { hint } = await assert.rejectsWith(quick, 'FILE_UNUSABLE', /, which SSL_CERT_FILE names: /);
    assert.is(hint, 'set SSL_CERT_FILE to a file in PEM format, or unset it');
  }
});

test('authorities after a byte order mark are trusted, and each problem of a certificate has its own hint', async ({
  signal,
}) => {
  const certificate = await makeCertificate(['files.test', 'other.test']);
  const old = await makeCertificate(['localhost'], { notBeforeDate: new Date(0), notAfterDate: new Date(1) });
  await using files = await tree({ 'ca.pem': `\u{FEFF}${certificate.ca}`, 'old.pem': old.ca });
  await using server = await serveFiles({ a: 'hello' }, { tls: certificate, name: 'localhost' });
  await using expired = await serveFiles({ a: 'hello' }, { tls: old, name: 'localhost' });
  await using http = await quickHttp({ caFile: files.at('ca.pem') });
  assert.is(await get(http, `${server.url.replace('localhost', '127.0.0.1')}/a`, signal), 'hello');
  const named = await assert.rejectsWith(get(http, `${server.url}/a`, signal), 'FETCH_FAILED');
  assert.match(named.hint ?? '', /^the certificate is for files\.test, other\.test, 127\.0\.0\.1: use one of/);
  await using later = await quickHttp({ caFile: files.at('old.pem') });
  const late = await assert.rejectsWith(get(later, `${expired.url}/a`, signal), 'FETCH_FAILED');
  assert.match(late.hint ?? '', /^renew the server's certificate/);
});

test('https goes through the proxy by CONNECT, http by its whole address, exceptions directly', async ({ signal }) => {
  const certificate = await makeCertificate(['files.test']);
  await using files = await tree({ 'ca.pem': certificate.ca });
  await using secure = await serveFiles({ a: 'secure' }, { tls: certificate });
  await using plain = await serveFiles({ a: 'plain' });
  const hosts = { 'files.test:443': secure.port, 'plain.test:80': plain.port };
  const authorization = `Basic ${Buffer.from('me:canary').toString('base64')}`;
  await using proxy = await startProxy({ hosts, authorization });
  const address = proxy.url.replace('//', '//me:canary@');
  const env = { HTTPS_PROXY: address, http_proxy: address, NO_PROXY: 'direct.test' };
  await using http = await quickHttp({ env, caFile: files.at('ca.pem'), allowHttp: ['plain.test'] });
  assert.is(await get(http, 'https://files.test/a', signal), 'secure');
  assert.is(await get(http, 'http://plain.test/a', signal), 'plain');
  assert.equal(proxy.log, ['CONNECT files.test:443', 'GET http://plain.test/a']);
  assert.not.match(JSON.stringify([secure.log, plain.log]), /proxy-auth/);
  await assert.rejectsWith(get(http, 'https://direct.test/a', signal), 'FETCH_FAILED');
  assert.is(proxy.log.length, 2);
});

test('a proxy is asked over TLS where its address says so', async ({ signal }) => {
  const certificate = await makeCertificate(['files.test']);
  await using files = await tree({ 'ca.pem': certificate.ca });
  await using secure = await serveFiles({ a: 'secure' }, { tls: certificate });
  await using plain = await serveFiles({ a: 'plain' });
  const hosts = { 'files.test:443': secure.port, 'other.test:443': secure.port, 'plain.test:80': plain.port };
  await using proxy = await startProxy({ hosts, tls: certificate });
  const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url };
  await using http = await quickHttp({ env, caFile: files.at('ca.pem'), allowHttp: ['plain.test'] });
  assert.is(await get(http, 'https://files.test/a', signal), 'secure');
  assert.is(await get(http, 'http://plain.test/a', signal), 'plain');
  assert.equal(proxy.log, ['CONNECT files.test:443', 'GET http://plain.test/a']);
  // The name in the certificate of the proxy is its own, not that of the server.
  await assert.rejectsWith(get(http, 'https://other.test/a', signal), 'FETCH_FAILED');
  assert.is(proxy.log.at(-1), 'CONNECT other.test:443');
  await using wary = await quickHttp({ env, retry: { attempts: 1, baseMs: 1, capMs: 1 } });
  const error = await assert.rejectsWith(
    get(wary, 'https://files.test/a', signal),
    'FETCH_FAILED',
    /through the proxy/,
  );
  assert.match(error.hint ?? '', /--ca-file/);
});

test('a proxy that is silent is left when the caller gives up', async () => {
  let open = 0;
  await using proxy = await startRaw((socket) => {
    open += 1;
    socket.on('close', () => (open -= 1));
  });
  await using http = await quickHttp({ env: { HTTPS_PROXY: proxy.url }, timeouts: { connectMs: 3_600_000 } });
  const stop = new AbortController();
  const asking = get(http, 'https://files.test/', stop.signal).catch(String);
  await until(() => open > 0);
  stop.abort(new Error('enough'));
  assert.is(await asking, 'Error: enough');
  await until(() => open === 0);
});

test('a proxy without a way there yet is asked again, one that refuses is not', async ({ signal }) => {
  for (const [status, times] of [
    [503, 4],
    [403, 1],
  ] as const) {
    let asked = 0;
    await using proxy = await startRaw((socket) => {
      asked += 1;
      socket.end(`HTTP/1.1 ${status} x\r\n\r\n`);
    });
    await using http = await quickHttp({ env: { HTTPS_PROXY: proxy.url } });
    const says = new RegExp(`files\\.test through the proxy [^ ]+: the proxy returned ${status}$`);
    await assert.rejectsWith(get(http, 'https://files.test/', signal), 'FETCH_FAILED', says);
    assert.is(asked, times);
  }
});

test('a proxy that rejects the credentials is AUTH_FAILED and keeps ours to itself', async ({ signal }) => {
  await using proxy = await startProxy({ authorization: 'Basic right' });
  const env = { HTTPS_PROXY: proxy.url.replace('//', '//me:canary@'), HTTP_PROXY: proxy.url };
  await using http = await quickHttp({ env, allowHttp: ['plain.test'] });
  const error = await assert.rejectsWith(get(http, 'https://files.test/', signal), 'AUTH_FAILED', /through the proxy/);
  assert.not.match(error.message, /canary/);
  await assert.rejectsWith(get(http, 'http://plain.test/', signal), 'AUTH_FAILED', /proxy/);
});

test.run();
