import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { networkInterfaces } from 'node:os';
import { createBufferPool } from '../../../src/platform/limit/buffer-pool.ts';
import { dataContent } from '../../../src/ship/serve/content.ts';
import { createWaits, SEND_BUFFERS, sendAnswer } from '../../../src/ship/serve/send.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages } from '../../support/bundles.ts';
import { noise } from '../../support/packages.ts';
import { FILE, rawRequest, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/serve/send');

test('an answer ends when the network has taken it, not before: idle connections may be closed', async () => {
  const taken: (() => void)[] = [];
  const line = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => {
      taken.push(done);
    },
  });
  const answer = dataContent(Buffer.alloc(1000), { etag: '"a"', type: 'application/gzip', cache: 'ask' });
  let seen: ServerResponse | undefined;
  const server = createServer((request, response) => {
    seen = response;
    const gone = new AbortController().signal;
    void sendAnswer(request, response, answer, {
      buffers: createBufferPool(SEND_BUFFERS),
      gone,
      minRate: 1,
      sent: () => undefined,
      waits: createWaits(Date.now),
    });
  });
  server.emit('connection', line);
  line.push('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const turn = async (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  while (taken.length === 0) await turn();
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.is(seen?.writableEnded, false);
  for (let turns = 0; turns < 10; turns += 1) {
    taken.shift()?.();
    await turn();
  }
  assert.is(seen?.writableEnded, true);
  line.destroy();
  server.close();
});

test('a client that names no host is answered, whatever the address is that it came to', async () => {
  const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === 'IPv6'));
  await using box = await tree();
  await using server = await serveStore(createFolderStore(box.path), { listen: { host: hasIpv6 ? '::' : '0.0.0.0' } });
  assert.match(await rawRequest(server.port, 'GET /healthz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
});

/** The first chunk at once, and the rest when it is let go. */
async function* heldBody(body: AsyncIterable<Uint8Array>, gate: Promise<void>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    yield chunk;
    await gate;
  }
}

test('a client that takes less than the least rate is cut off, one that waits for a slow store is not', async ({
  signal,
}) => {
  await using box = await tree();
  // More than the buffers of the network hold.
  const files = [{ path: 'images/a', data: noise(16_000_000) }];
  const store = await publishTestPackages(box, [{ name: 'alpha', version: '1.0+k1', files }], signal);
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  let isHeld = true;
  const get: Store['get'] = async (key, options) => {
    const found = await store.get(key, options);
    if (!isHeld) return found;
    isHeld = false;
    return { ...found, body: heldBody(found.body, gate) };
  };
  // Two chunks of 128 KiB in a tenth of a second.
  await using server = await serveStore({ ...store, get }, { limits: { minRate: 2_621_440 } });
  const answer = await fetch(server.url + FILE);
  const socket = connect(server.port, '127.0.0.1').pause();
  socket.on('error', () => undefined);
  socket.write(`GET ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await until(() => server.log.length > 0);
  assert.equal([server.log[0]?.status, server.log[0]?.cut], [200, true]);
  socket.destroy();
  // It has waited for longer than the other one.
  letGo();
  assert.is((await answer.arrayBuffer()).byteLength, Number(answer.headers.get('content-length')));
});

test('the longest wait for a client is cut, if it is long enough, and one that has ended is not', () => {
  const line = new Duplex({ read: () => undefined });
  const [first, second, third] = Array.from(
    { length: 3 },
    () => new ServerResponse(new IncomingMessage(line as Socket)),
  );
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  let time = 0;
  const waits = createWaits(() => time);
  for (const response of [first, second, third]) {
    waits.begin(response);
    time += 1000;
  }
  waits.begin(first);
  waits.end(second);
  assert.equal([waits.cut(1001), third.destroyed], [false, false]);
  assert.equal([waits.cut(1000), third.destroyed, first.destroyed], [true, true, false]);
  assert.equal([waits.cut(0), first.destroyed, waits.cut(0), second.destroyed], [true, true, false, false]);
});

test('a full server gives a new client the place of one that has not read for half a minute', async ({ signal }) => {
  await using box = await tree();
  const files = [{ path: 'images/a', data: noise(16_000_000) }];
  const store = await publishTestPackages(box, [{ name: 'alpha', version: '1.0+k1', files }], signal);
  let time = 0;
  await using server = await serveStore(store, { limits: { connections: 1 }, listen: { now: () => time } });
  const socket = connect(server.port, '127.0.0.1').pause();
  socket.on('error', () => undefined);
  socket.write(`GET ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(socket, 'readable');
  const health = async (): Promise<string> => rawRequest(server.port, 'GET /healthz HTTP/1.0\r\n\r\n');
  time = 29_999;
  assert.is(await health(), '');
  // What the network still takes begins the wait again.
  await until(async () => {
    time += 30_000;
    return (await health()).startsWith('HTTP/1.1 200 ');
  });
  assert.equal(
    server.log.map(({ path, cut }) => [path, cut]),
    [
      [FILE, true],
      ['/healthz', undefined],
    ],
  );
  socket.destroy();
});

test.run();
