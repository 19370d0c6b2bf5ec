import * as assert from '../../support/assert.ts';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { readBody } from '../../../src/ship/serve/handler.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/serve/read-body');

const LIMIT = 64 << 10;

/** What is read of a body that comes in these chunks, and the bytes of memory that its pieces lie in. */
async function readChunks(chunks: readonly string[]): Promise<{ readonly body: string | undefined; held: number }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (const chunk of chunks) socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    socket.write('0\r\n\r\n');
    const [request] = (await once(server, 'request')) as [IncomingMessage];
    const body = await readBody(request, LIMIT);
    const text = body === undefined ? undefined : Buffer.from(body).toString();
    return { body: text, held: body?.buffer.byteLength ?? 0 };
  } finally {
    socket.destroy();
    server.close();
  }
}

test('a body of single bytes takes no more memory than its limit', async () => {
  const { body, held } = await readChunks(Array.from({ length: 3000 }, (_, at) => String(at % 10)));
  assert.is(body, '0123456789'.repeat(300));
  assert.is(held, LIMIT);
});

test('a body may be as long as its limit, and no longer', async () => {
  const pieces = ['a'.repeat(LIMIT / 2), 'b'.repeat(LIMIT / 2)];
  assert.is((await readChunks(pieces)).body, pieces.join(''));
  assert.is((await readChunks([...pieces, 'c'])).body, undefined);
});

test.run();
