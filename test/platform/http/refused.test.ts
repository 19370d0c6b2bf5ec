/** What is advised if a server refuses access. */
import { createServer, type AddressInfo } from 'node:net';
import * as assert from '../../support/assert.ts';
import { quickHttp } from '../../support/client.ts';
import { answers } from '../../support/faults.ts';
import { startProxy } from '../../support/proxy-server.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('platform/http/refused');

test('a server that refuses access is no registry, unless it negotiates authorization', async ({ signal }) => {
  await using server = await serveFiles({}, { faults: [answers({ status: 403 })] });
  await using http = await quickHttp();
  const request = { doing: 'get it', url: `${server.url}/a` };
  const { body, ...head } = await http.small(request, { limit: 10, signal });
  const plain = http.failure(request, head, body);
  assert.match(plain.hint ?? '', /^check the address, .* USER:PASSWORD@ before its host$/);
  assert.not.match(plain.hint ?? '', 'docker');
  for (const more of [{ authorize: async () => Promise.resolve(undefined) }, { via: `${server.url}/v2/` }])
    assert.match(http.failure({ ...request, ...more }, head, body).hint ?? '', 'docker login');
});

test('a proxy that offers only what curlew does not speak is said so, not that it wants a password', async ({
  signal,
}) => {
  for (const [schemes, says] of [
    [['Negotiate', 'NTLM'], /offers only Negotiate, NTLM/],
    [['Digest realm="a, Basic", nonce="b"'], /offers only Digest/],
    [['NTLM', 'Basic realm="a"'], /rejects the credentials/],
  ] as const) {
    await using proxy = await startProxy({ authorization: 'NTLM right', schemes });
    const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url };
    await using http = await quickHttp({ env, allowHttp: ['plain.test'] });
    for (const url of ['https://files.test/', 'http://plain.test/']) {
      const asking = http.small({ doing: 'get it', url }, { limit: 10, signal });
      const { hint } = await assert.rejectsWith(asking, 'AUTH_FAILED', says);
      assert.is(/USER:PASSWORD@/.test(hint ?? ''), says.source.startsWith('rejects'), hint);
    }
  }
});

test('a server without TLS at an https address is said to be one, with what to do', async ({ signal }) => {
  await using web = await serveFiles({});
  await using http = await quickHttp();
  const url = web.url.replace('http:', 'https:');
  const asking = http.small({ doing: 'get it', url }, { limit: 10, signal });
  const { message, hint } = await assert.rejectsWith(asking, 'FETCH_FAILED');
  assert.is(message, `cannot get it: ${new URL(url).host}: the server does not speak TLS`);
  assert.is(hint, 'write http:// instead of https:// in the address, or use the port for https');
});

test('a refused TLS handshake is said with its reason alone', async ({ signal }) => {
  await using http = await quickHttp();
  // The alert handshake_failure.
  const alert = Buffer.from([21, 3, 3, 0, 2, 2, 40]);
  const server = createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.end(alert)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const asking = http.small({ doing: 'get it', url }, { limit: 10, signal });
  await assert.rejectsWith(asking, 'FETCH_FAILED', /: the TLS handshake failed \([^:\\]*handshake failure\)$/);
  await new Promise((resolve) => server.close(resolve));
});

test.run();
