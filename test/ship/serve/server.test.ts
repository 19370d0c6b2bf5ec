import { once } from 'node:events';
import { get as httpsGet } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { FILE, onePackage, rawRequest, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import type { Store } from '../../../src/ship/store/store.ts';

// not fast: floods of requests
const test = suite('ship/serve/server');

test('other methods are refused with those that are allowed', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST']) {
    const answer = await fetch(server.url + FILE, { method });
    assert.equal([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD'], method);
  }
  assert.is((await fetch(`${server.url}/installer`)).headers.get('allow'), 'POST');
  for (const line of [
    'TRACE / HTTP/1.1',
    'BREW / HTTP/1.1',
    'GET  HTTP/1.1',
    'GET /healthz SMTP/1.1',
    '\x16\x03\x01',
  ]) {
    assert.not.match(
      await rawRequest(server.port, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`),
      /^HTTP\/1\.1 [25]/,
      line,
    );
  }
});

test('a server without a host listens on every address that the machine has', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store, { listen: { host: undefined } });
  assert.match(server.url, /^http:\/\/(?:\[::\]|0\.0\.0\.0):\d+$/);
  assert.is((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status, 200);
});

test('a request with two hosts is refused, though they be the same', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const other of ['x', 'evil.example']) {
    const head = `GET /healthz HTTP/1.1\r\nHost: x\r\nhost: ${other}\r\nConnection: close\r\n\r\n`;
    assert.match(await rawRequest(server.port, head), /^HTTP\/1\.1 400 /);
  }
});

test('a name of the machine that can stand in no URL is as good as any other', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const host of ['node.1', 'a.example.2:8080', '[::::]', 'x:99999']) {
    const head = `GET /dist/alpha-1.0-k1.tar.gz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    assert.match(await rawRequest(server.port, head), /^HTTP\/1\.1 302 .*\r\nLocation: \/dist\/r1\//s, host);
  }
});

test('tricks with paths get 400 or 404 as they are sent, and nothing outside the store', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const path of [
    '/dist/../../../etc/passwd',
    '/dist/%2e%2e/%2e%2e/etc/passwd',
    '/dist/%252e%252e/etc/passwd',
    '/dist/..%2f..%2fetc%2fpasswd',
    '/dist/r1/%00.tar.gz',
    '/dist//r1/index.json',
    '//dist/VERSION',
    '/dist/r1/..%5c..%5cx.json',
    '/v2/%2e%2e/manifests/x',
    '/bundle/%2e%2e%2fVERSION.tar.gz',
    'http://elsewhere.example/dist/VERSION',
    '/dist/\u00e9.json',
  ]) {
    const answer = await rawRequest(server.port, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 40[04] /, path);
    assert.not.match(answer, 'root:');
  }
});

test('a head that is too large, and one that comes letter by letter, end the connection', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store, { limits: { headMs: 300 } });
  const large = `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`;
  assert.match(await rawRequest(server.port, large), /^HTTP\/1\.1 431 /);
  assert.match(await rawRequest(server.port, 'GET /healthz HTTP/1.1\r\nHost'), /^HTTP\/1\.1 408 /);
  assert.is((await fetch(`${server.url}/healthz`)).status, 200);
});

test('a body that does not come to its end ends the connection', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const token = 'a-token-of-enough-letters';
  await using server = await serveStore(store, { limits: { bodyMs: 300 }, listen: { token } });
  const head = `POST /installer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n\r\n`;
  assert.match(await rawRequest(server.port, `${head}spec:`), /^HTTP\/1\.1 408 /);
});

for (const limits of [{ headMs: 300 }, { idleMs: 300 }]) {
  const [name] = Object.keys(limits);
  test(`a client that waits for this server is not late (${name})`, async ({ signal }) => {
    const { box, store } = await onePackage(signal);
    await using _ = box;
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const slow: Store = {
      ...store,
      head: async (...args) => {
        await gate;
        return store.head(...args);
      },
    };
    await using server = await serveStore(slow, { limits });
    // What is read together ends in the middle of a head.
    const asked = `HEAD ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(30);
    const answers = rawRequest(server.port, `${asked}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    const health = async (): Promise<string> => (await fetch(`${server.url}/healthz`)).text();
    await until(async () => /"active_streams":[1-9]/.test(await health()));
    // A request that came later and is late.
    await rawRequest(server.port, '');
    letGo();
    assert.is((await answers).match(/^HTTP\/1\.1 200/gm)?.length, 31);
  });
}

test('a client that takes nothing is cut when nothing has moved for a while', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store, { limits: { idleMs: 300 } });
  const ranges = Array.from({ length: 12 }, () => FILE);
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  // Pipelined, so that it is more than the buffers of the two systems hold.
  socket.write(ranges.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
  await until(() => server.log.some(({ cut }) => cut === true));
  socket.destroy();
  assert.is((await fetch(`${server.url}/healthz`)).status, 200);
});

test('requests that are sent all at once are answered one after the other, in order', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  let reading = 0;
  let most = 0;
  const watched: Store = {
    ...store,
    head: async (...args) => {
      reading += 1;
      most = Math.max(most, reading);
      try {
        return await store.head(...args);
      } finally {
        reading -= 1;
      }
    },
  };
  await using server = await serveStore(watched);
  const heads = Array.from({ length: 99 }, () => `HEAD ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const last = 'GET /dist/none.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const answers = (await rawRequest(server.port, heads.join('') + last)).match(/^HTTP\/1\.1 \d+/gm) ?? [];
  assert.equal([answers.length, answers.at(-1), most], [100, 'HTTP/1.1 404', 1]);
});

test('what a connection sends far ahead of its answers is not read before these have left', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const made: string[] = [];
  const watched: Store = {
    ...store,
    head: async (...args) => {
      made.push('look');
      return store.head(...args);
    },
  };
  await using server = await serveStore(watched);
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  // Twice the package is more than the buffers of the two systems hold.
  socket.write(`GET ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(2));
  socket.write(`HEAD ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(400_000));
  // It has taken what it wants when it takes no more.
  for (let before = -1; socket.writableLength !== before || socket.writableLength === 0 || made.length === 0;) {
    before = socket.writableLength;
    for (let round = 0; round < 20; round += 1) assert.is((await fetch(`${server.url}/healthz`)).status, 200);
  }
  const { active_streams: others } = (await (await fetch(`${server.url}/healthz`)).json()) as {
    active_streams: number;
  };
  socket.destroy();
  assert.ok(made.length <= 2, `${made.length} looks`);
  assert.ok(others < 40, `${others} requests that wait`);
});

test('all that was sent at once is answered, however much it is', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const asked = 'HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2000);
  const last = 'GET /dist/none.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const answers = (await rawRequest(server.port, asked + last)).match(/^HTTP\/1\.1 \d+/gm) ?? [];
  assert.equal([answers.length, answers.at(-1)], [2001, 'HTTP/1.1 404']);
});

test('connections that ask all the time take turns with others', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const flood = 'HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20_000);
  const sockets = Array.from({ length: 10 }, () => connect(server.port, '127.0.0.1'));
  for (const socket of sockets) {
    socket.on('error', () => undefined);
    socket.resume();
    socket.write(flood);
  }
  await until(() => server.log.length > 1000);
  const before = server.log.length;
  assert.is((await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } })).status, 200);
  const meanwhile = server.log.length - before;
  assert.ok(meanwhile < 400, `${meanwhile} others were answered first`);
  for (const socket of sockets) socket.destroy();
});

test('more connections than allowed are closed, and the others go on', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store, { limits: { connections: 2 } });
  const sockets = [connect(server.port, '127.0.0.1'), connect(server.port, '127.0.0.1')];
  for (const socket of sockets) await once(socket, 'connect');
  assert.is(await rawRequest(server.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'), '');
  sockets[0]?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  const [data] = (await once(sockets[0] ?? sockets[1] ?? process.stdin, 'data')) as [Buffer];
  assert.match(data.toString(), /^HTTP\/1\.1 200/);
  for (const socket of sockets) socket.destroy();
});

test('two hundred clients at once get every byte', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const size = (await store.head('r1/alpha-1.0-k1.tar.gz', { signal }))?.size;
  const sizes = await Promise.all(
    Array.from({ length: 200 }, async () => {
      let bytes = 0;
      const answer = await fetch(server.url + FILE);
      for await (const chunk of answer.body ?? []) bytes += (chunk as Uint8Array).byteLength;
      return bytes;
    }),
  );
  assert.equal(new Set(sizes), new Set([size]));
});

test('stopping waits for running answers, takes no new ones, and cuts what is still there after its time', async ({
  signal,
}) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const server = await serveStore(store, { limits: { graceMs: 30_000 } });
  const answer = await fetch(server.url + FILE);
  const stopped = server.stop();
  assert.is(await rawRequest(server.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'), '');
  const { byteLength } = await answer.arrayBuffer();
  assert.is(byteLength, Number(answer.headers.get('content-length')));
  await stopped;
});

test('the log tells what was sent without what may be secret', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  await (
    await fetch(`${server.url}/dist/VERSION?token=hidden`, { headers: { authorization: 'Bearer hidden' } })
  ).text();
  await until(() => server.log.length > 0);
  const [line] = server.log;
  assert.equal([line?.path, line?.status, line?.bytes, line?.cut], ['/dist/VERSION', 200, 2, undefined]);
  assert.not.match(JSON.stringify(line), 'hidden');
});

test('the end does not wait for who has connected and asks for nothing', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const { key, cert, ca } = await makeCertificate();
  for (const tls of [undefined, { key, cert }]) {
    for (const said of ['', 'GET /healthz HTTP/1.1\r\nHost']) {
      await using server = await serveStore(store, { limits: { graceMs: 600_000 }, listen: { tls } });
      const { port } = server;
      const socket = tls === undefined ? connect(port, '127.0.0.1') : connectTls({ port, host: '127.0.0.1', ca });
      socket.on('error', () => undefined);
      await once(socket, tls === undefined ? 'connect' : 'secureConnect');
      socket.write(said);
      const closed = once(socket, 'close');
      await Promise.all([server.stop(), closed]);
    }
  }
});

test('health and metrics tell what goes on', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  assert.equal(await (await fetch(`${server.url}/healthz`)).json(), {
    is_alive: true,
    active_streams: 0,
    version: '1.2.3',
  });
  await (await fetch(`${server.url}/bundle/one.tar.gz`)).arrayBuffer();
  const text = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(text, /^curlew_serve_requests_total\{route="bundle",code="200"\} 1$/m);
  assert.match(text, /^curlew_serve_plans 1$/m);
  assert.match(text, /^curlew_serve_first_byte_seconds_bucket\{le="\+Inf"\} 2$/m);
  for (const line of text.trimEnd().split('\n'))
    assert.match(line, /^(?:# (?:HELP|TYPE) |curlew_serve_\w+(?:\{[^}]*\})? [\d.]+$)/);
});

test('with a certificate it speaks TLS, and addresses in answers are https', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const { key, cert, ca } = await makeCertificate();
  await using server = await serveStore(store, { listen: { tls: { key, cert } } });
  const text = await new Promise<string>((resolve, reject) => {
    httpsGet(`${server.url}/one/install.sh`, { ca }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => resolve(Buffer.concat(parts).toString()));
    }).on('error', reject);
  });
  assert.match(text, `'https://127.0.0.1:${server.port}'`);
  await assert.rejectsWith(
    serveStore(store, { listen: { tls: { key: 'x', cert } } }),
    'USAGE',
    /--tls-key: the certificate or its key is not PEM$/,
  );
  const other = await makeCertificate();
  await assert.rejectsWith(
    serveStore(store, { listen: { tls: { key: other.key, cert } } }),
    'USAGE',
    /the key does not belong to the certificate$/,
  );
});

test('a port that somebody else has is told', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store);
  await assert.rejectsWith(
    serveStore(store, { listen: { port: server.port } }),
    'BUSY',
    /another program is already listening on this port$/,
  );
  await assert.rejectsWith(
    serveStore(store, { listen: { host: '192.0.2.1' } }),
    'USAGE',
    /does not have this address$/,
  );
});

test.run();
