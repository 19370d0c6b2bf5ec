import { createServer, type ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { networkInterfaces } from 'node:os';
import { createBuffers } from '../../src/serve/buffers.ts';
import { dataContent } from '../../src/serve/content.ts';
import { sendAnswer } from '../../src/serve/send.ts';
import { createFolderStore } from '../../src/store/folder.ts';
import * as assert from '../support/assert.ts';
import { rawRequest, serveStore } from '../support/served.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('serve/send');

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
    const options = { buffers: createBuffers(), gone: new AbortController().signal, sent: () => undefined };
    void sendAnswer(request, response, answer, options);
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

test.run();
