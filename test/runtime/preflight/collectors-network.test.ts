import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo } from 'node:net';
import type { Json } from '../../../src/formats/yaml/yaml.ts';
import type { HttpFacts } from '../../../src/runtime/preflight/checks/http.ts';
import * as assert from '../../support/assert.ts';
import { collect } from '../../support/preflight.ts';
import { freePort } from '../../support/ports.ts';
import { suite } from '../../support/suite.ts';
import { startProxy } from '../../support/proxy-server.ts';
import { makeCertificate } from '../../support/tls.ts';
import { startServer } from '../../support/web-server.ts';

const test = suite('preflight/collectors, network');

interface Listener extends AsyncDisposable {
  readonly port: number;
}

async function listen(): Promise<Listener> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => {
    server.listen(0, resolve);
  });
  const close = async (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
    });
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

const status = (facts: Json): Json | undefined => (facts as Record<string, Json>)['status'];

test('a port is free, or somebody listens on it', async ({ signal }) => {
  const port = await freePort();
  assert.is(status(await collect('tcpPortStatus', { port, interface: 'lo' }, { signal })), 'connected');
  // Nothing stays bound.
  assert.is(status(await collect('tcpPortStatus', { port, interface: 'lo' }, { signal })), 'connected');
  await using used = await listen();
  assert.is(status(await collect('tcpPortStatus', { port: used.port, interface: 'lo' }, { signal })), 'address-in-use');
});

test('an interface that is not there has a reason, and a port that cannot be is no address', async ({ signal }) => {
  let message = '';
  await collect('tcpPortStatus', { port: 1, interface: 'nosuch0' }, { signal }).catch((error: unknown) => {
    message = String(error);
  });
  assert.match(message, 'no interface nosuch0');
  assert.is(status(await collect('tcpPortStatus', { port: 70_000, interface: 'lo' }, { signal })), 'invalid-address');
});

test('a UDP port is free, or somebody has bound it', async ({ signal }) => {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => {
    socket.bind(0, '0.0.0.0', resolve);
  });
  const { port } = socket.address();
  assert.is(status(await collect('udpPortStatus', { port }, { signal })), 'address-in-use');
  await new Promise<void>((resolve) => {
    socket.close(resolve);
  });
  assert.is(status(await collect('udpPortStatus', { port }, { signal })), 'connected');
  assert.is(status(await collect('udpPortStatus', { port, interface: 'lo' }, { signal })), 'connected');
});

test('another machine answers, refuses, or its address is none', async ({ signal }) => {
  await using open = await listen();
  const to = async (address: string): Promise<Json | undefined> =>
    status(await collect('tcpConnect', { address, timeout: '5s' }, { signal }));
  assert.is(await to(`127.0.0.1:${open.port}`), 'connected');
  assert.is(await to(`127.0.0.1:${await freePort()}`), 'connection-refused');
  assert.is(await to('127.0.0.1'), 'error');
  assert.is(await to('127.0.0.1:99999'), 'error');
});

test('a load balancer has to lead back to this machine', async ({ signal }) => {
  const port = await freePort();
  const balanced = async (address: string): Promise<Json | undefined> =>
    status(await collect('tcpLoadBalancer', { port, address, timeout: '700ms' }, { signal }));
  assert.is(await balanced(`127.0.0.1:${port}`), 'connected');
  await using other = await listen();
  assert.is(await balanced(`127.0.0.1:${other.port}`), 'connection-timeout');
  assert.is(await balanced(`127.0.0.1:${await freePort()}`), 'connection-refused');
  for (const address of ['', 'lb', 'LB.example:6443', '1.2.3:6443', '[::1]:6443', 'lb:0', '-a:1']) {
    assert.is(await balanced(address), 'invalid-address', address);
  }
});

test('of the answer of a web server only its status is kept, redirects followed', async ({ signal }) => {
  await using server = await startServer((asked) => {
    if (asked.path === '/moved') return { status: 302, headers: { location: '/end' } };
    if (asked.path === '/loop') return { status: 302, headers: { location: '/loop' } };
    return { status: asked.method === 'POST' && asked.body === 'x' ? 201 : 404, body: 'secret' };
  });
  const ask = async (settings: Readonly<Record<string, Json>>): Promise<Json> => collect('http', settings, { signal });
  assert.equal(await ask({ get: { url: `${server.url}/a`, headers: { 'x-a': 'b' } } }), { statusCode: 404 });
  assert.is(server.log.at(-1)?.headers['x-a'], 'b');
  assert.equal(await ask({ get: { url: `${server.url.replace('//', '//me:word@')}/a` } }), { statusCode: 404 });
  assert.is(server.log.at(-1)?.headers['authorization'], `Basic ${Buffer.from('me:word').toString('base64')}`);
  assert.equal(await ask({ post: { url: `${server.url}/a`, body: 'x' } }), { statusCode: 201 });
  assert.equal(await ask({ get: { url: `${server.url}/moved` } }), { statusCode: 404 });
  assert.equal(await ask({ get: { url: `${server.url}/loop` } }), { error: 'stopped after 10 redirects' });
  assert.equal(await ask({ get: { url: 'ftp://127.0.0.1/' } }), { error: 'unsupported protocol ftp:' });
  const socks = { url: server.url, proxy: 'socks5://127.0.0.1:1' };
  assert.equal(await ask({ get: socks }), { error: 'unsupported protocol socks5:' });
});

test('a clock that differs from that of the server is a number of seconds, and a small one is none', async ({
  signal,
}) => {
  const asked = async (ahead: number): Promise<number | undefined> => {
    const date = new Date(Date.now() + ahead).toUTCString();
    await using server = await startServer(() => ({ status: 200, headers: { date } }));
    const facts = (await collect('http', { get: { url: server.url } }, { signal })) as { clockSkew?: number };
    return facts.clockSkew;
  };
  for (const ahead of [3_600_000, -3_600_000]) assert.ok(Math.abs(((await asked(ahead)) ?? 0) - 3600) < 60);
  assert.is(await asked(1000), undefined);
});

test('a server that is not there, is silent, or cannot be trusted is an error', async ({ signal }) => {
  const ask = async (get: Readonly<Record<string, Json>>): Promise<string> => {
    const facts = (await collect('http', { get }, { signal })) as HttpFacts;
    return 'error' in facts ? facts.error : String(facts.statusCode);
  };
  assert.match(await ask({ url: `http://127.0.0.1:${await freePort()}/` }), 'ECONNREFUSED');
  assert.match(await ask({ url: 'nonsense' }), 'not an address');
  await using silent = await startServer(() => ({ status: 200, sending: 'never' }));
  assert.is(await ask({ url: silent.url, timeout: '100ms' }), 'no response within 0.1 s');
  const tls = await makeCertificate();
  await using secure = await startServer(() => ({ status: 200 }), { tls });
  assert.match(await ask({ url: secure.url }), 'certificate');
  assert.is(await ask({ url: secure.url, insecureSkipVerify: true }), '200');
  assert.is(await ask({ url: secure.url, tls: { cacert: tls.ca } }), '200');
});

test('a web server is asked through the proxy that the environment names', async ({ signal }) => {
  const tls = await makeCertificate(['far.test']);
  await using secure = await startServer(() => ({ status: 204 }), { tls });
  await using plain = await startServer(() => ({ status: 202 }));
  await using proxy = await startProxy({ hosts: { 'far.test:443': secure.port, 'near.test:80': plain.port } });
  const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url };
  const get = { url: 'https://far.test/health', tls: { cacert: tls.ca } };
  assert.equal(await collect('http', { get }, { signal, env }), { statusCode: 204 });
  assert.equal(await collect('http', { get: { url: 'http://near.test/' } }, { signal, env }), { statusCode: 202 });
  assert.equal(await collect('http', { get: { ...get, proxy: proxy.url } }, { signal }), { statusCode: 204 });
  assert.equal(proxy.log, ['CONNECT far.test:443', 'GET http://near.test/', 'CONNECT far.test:443']);
});

test.run();
