import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { portsInUse } from '../../../src/runtime/host/listening-ports.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/listening-ports');

test('a port that somebody listens on is in use, with the name of the program; a free one is not', async ({
  signal,
}) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const tcp = (server.address() as AddressInfo).port;
  const udp = socket.address().port;
  try {
    const wanted = [
      { protocol: 'tcp', port: tcp },
      { protocol: 'udp', port: udp },
    ] as const;
    const found = await portsInUse(wanted, { signal });
    assert.equal(
      new Set(found.map(({ protocol, port }) => `${protocol} ${port}`)),
      new Set(wanted.map(({ protocol, port }) => `${protocol} ${port}`)),
    );
    assert.match(found[0]?.process ?? '', /^node|MainThread/);
  } finally {
    server.close();
    socket.close();
  }
  await once(server, 'close');
  assert.equal(await portsInUse([{ protocol: 'tcp', port: tcp }], { signal }), []);
});

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const row = (local: string, state: string): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n`;

test('only listening sockets count, on IPv4 and IPv6; each port is told once', async ({ signal }) => {
  await using box = await tree({
    'net/tcp': HEAD + row('0100007F:192B', '0A') + row('0100007F:094B', '01') + 'torn line\n',
    'net/tcp6': HEAD + row('00000000000000000000000000000000:192B', '0A'),
    'net/udp': HEAD + row('0100007F:192B', '07'),
  });
  const wanted = [6443, 2379].map((port) => ({ protocol: 'tcp' as const, port }));
  assert.equal(await portsInUse(wanted, { proc: box.path, signal }), [
    { protocol: 'tcp', port: 6443, process: undefined },
  ]);
});

test('a machine without these tables has no ports in use', async ({ signal }) => {
  await using box = await tree({});
  assert.equal(await portsInUse([{ protocol: 'tcp', port: 1 }], { proc: box.path, signal }), []);
});

test.run();
