import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { download } from '../../../src/platform/http/download.ts';
import * as assert from '../../support/assert.ts';
import { collector, quickHttp } from '../../support/client.ts';
import { binaryLike } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { makeCertificate } from '../../support/tls.ts';

const test = suite('net/early-end');
const BODY = binaryLike(3_000_000, 'early', 1);

interface Raw extends AsyncDisposable {
  readonly port: number;
  readonly asked: () => number;
}

/** Sends a head and a body as they are, then ends or resets the connection at once. */
async function startRaw(
  head: (from: number) => string,
  end: (socket: Socket, times: number) => void,
  tls?: { readonly key: string; readonly cert: string },
): Promise<Raw> {
  let asked = 0;
  const serve = (socket: Socket): void => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (request) => {
      asked += 1;
      const from = Number(/^range: bytes=(\d+)-/im.exec(request.toString('latin1'))?.[1] ?? 0);
      socket.write(head(from));
      socket.write(BODY.subarray(from), () => {
        end(socket, asked);
      });
    });
  };
  const server: Server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    asked: () => asked,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

/** A head without regard to what was asked for. */
function wholeHead(version: string, fields: string): () => string {
  return () => `HTTP/${version} 200 OK\r\n${fields}\r\n`;
}

/** Lets the connection end while the body is read. */
function slowWriter(): { readonly write: (chunk: Uint8Array) => Promise<void>; readonly body: () => Buffer } {
  const { write, body } = collector();
  return {
    write: async (chunk) => {
      const copy = Uint8Array.from(chunk);
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      write(copy);
    },
    body,
  };
}

const length = `Content-Length: ${BODY.byteLength}\r\n`;
const endings = [
  ['a server of HTTP/1.0 with a length', wholeHead('1.0', length)],
  ['a server of HTTP/1.0 without a length', wholeHead('1.0', '')],
  ['a server that closes after each answer', wholeHead('1.1', `${length}Connection: close\r\n`)],
] as const;

for (const [what, head] of endings) {
  test(`the body of ${what} arrives whole at a slow writer`, async ({ signal }) => {
    await using server = await startRaw(head, (socket) => socket.end());
    await using http = await quickHttp();
    const { write, body } = slowWriter();
    await download(http, { doing: 'fetch it', url: `http://127.0.0.1:${server.port}/`, write }, { signal });
    assert.ok(body().equals(BODY));
    assert.is(server.asked(), 1);
  });

  test(`over TLS, the body of ${what} arrives whole at a slow writer`, async ({ signal }) => {
    const certificate = await makeCertificate();
    await using folder = await tree({ 'ca.pem': certificate.ca });
    await using server = await startRaw(head, (socket) => socket.end(), certificate);
    await using http = await quickHttp({ caFile: folder.at('ca.pem') });
    const { write, body } = slowWriter();
    await download(http, { doing: 'fetch it', url: `https://127.0.0.1:${server.port}/`, write }, { signal });
    assert.ok(body().equals(BODY));
  });
}

test('a connection that is reset under a slow writer is a broken transfer, and goes on', async ({ signal }) => {
  const head = (from: number): string =>
    from === 0
      ? `HTTP/1.1 200 OK\r\n${length}Connection: close\r\n\r\n`
      : `HTTP/1.1 206 Partial Content\r\nContent-Length: ${BODY.byteLength - from}\r\nConnection: close\r\n` +
        `Content-Range: bytes ${from}-${BODY.byteLength - 1}/${BODY.byteLength}\r\n\r\n`;
  await using server = await startRaw(head, (socket, times) => {
    if (times === 1) socket.resetAndDestroy();
    else socket.end();
  });
  await using http = await quickHttp();
  const { write, body } = slowWriter();
  await download(http, { doing: 'fetch it', url: `http://127.0.0.1:${server.port}/`, write }, { signal });
  assert.ok(body().equals(BODY));
});

test.run();
