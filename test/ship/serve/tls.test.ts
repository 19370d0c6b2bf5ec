/** What of TLS the server offers. */
import { once } from 'node:events';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { errnoOf } from '../../../src/core/errors.ts';
import * as assert from '../../support/assert.ts';
import { onePackage, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';

const test = suite('ship/serve/tls');

test('a client of TLS 1.2 may not demand another handshake', async ({ signal }) => {
  const { key, cert, ca } = await makeCertificate();
  const { box, store } = await onePackage(signal);
  await using _ = box;
  await using server = await serveStore(store, { listen: { tls: { key, cert } } });
  const socket = connectTls({ port: server.port, host: '127.0.0.1', ca, maxVersion: 'TLSv1.2' });
  await once(socket, 'secureConnect');
  const end = await new Promise<string>((resolve) => {
    socket.on('error', ({ message }) => resolve(message));
    socket.renegotiate({}, (error) => resolve(error?.message ?? 'another handshake'));
  });
  socket.destroy();
  assert.match(end, 'no renegotiation');
});

test('ciphers that chain blocks are refused, also to clients of TLS 1.2, which get the others', async ({ signal }) => {
  const { box, store } = await onePackage(signal);
  await using _ = box;
  const { key, cert, ca } = await makeCertificate();
  await using server = await serveStore(store, { listen: { tls: { key, cert } } });
  const agreed = async (options: ConnectionOptions): Promise<string> => {
    const socket = connectTls({ host: '127.0.0.1', port: server.port, ca, ...options });
    try {
      await once(socket, 'secureConnect');
      return `${socket.getProtocol()} ${socket.getCipher().name}`;
    } catch (error) {
      return errnoOf(error) ?? '';
    } finally {
      socket.destroy();
    }
  };
  assert.is(await agreed({}), 'TLSv1.3 TLS_AES_256_GCM_SHA384');
  const gcm = 'ECDHE-ECDSA-AES128-GCM-SHA256';
  assert.is(await agreed({ maxVersion: 'TLSv1.2', ciphers: gcm }), `TLSv1.2 ${gcm}`);
  for (const ciphers of ['ECDHE-ECDSA-AES128-SHA256', 'ECDHE-ECDSA-AES256-SHA384', 'ECDHE-ECDSA-AES128-SHA']) {
    assert.match(await agreed({ maxVersion: 'TLSv1.2', ciphers }), 'HANDSHAKE_FAILURE');
  }
});

test.run();
