import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createS3Store } from '../../../src/ship/store/s3.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { withVariables } from '../../support/environment.ts';
import { s3ErrorBody } from '../../support/s3-proxy.ts';
import { patterned, uploadOf } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { startServer, type Asked, type Reply } from '../../support/web-server.ts';

const test = suite('ship/store/s3-limits');

const keys = withVariables({ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'testsecret' });
test.after(() => {
  keys[Symbol.dispose]();
});
const open = (endpoint: string): Store => createS3Store('s3://bucket/dist', { endpoint, report: noReport });
const xml = (status: number, body: string): Reply => ({ status, body });
const error = (status: number, name: string): Reply => xml(status, s3ErrorBody(name));
const MIB = 1 << 20;

/** A server that answers `refused` to conditions which do not hold: every object exists, with another etag. */
function conditional(refused: Reply): (asked: Asked) => Reply {
  const seen = new Set<string>();
  return ({ method, path, headers }) => {
    const [key = ''] = path.split('?');
    if (method !== 'PUT') return seen.has(key) ? { status: 200, headers: { etag: '"1"' } } : { status: 404 };
    if (headers['if-match'] !== undefined) return refused;
    if (headers['if-none-match'] === '*' && seen.has(key)) return refused;
    seen.add(key);
    return { status: 200, headers: { etag: '"1"' } };
  };
}

test('a server that answers 304 to a refused condition refuses, and nothing else fails', async ({ signal }) => {
  await using server = await startServer(conditional({ status: 304 }));
  const store = open(server.url);
  const put = async () => store.put('a', Buffer.from('one'), { ifNoneMatch: '*', signal });
  assert.is((await put()).etag, '1');
  await assert.rejectsWith(put(), 'STORE_CONFLICT', /a already exists/);
  const changed = store.put('a', Buffer.from('two'), { ifMatch: '9', signal });
  await assert.rejectsWith(changed, 'STORE_CONFLICT', /has changed/);
});

for (const when of ['with it', 'before the next response'] as const) {
  test(`a server whose 304 has a body, which is not valid HTTP, is published to without conditions: ${when}`, async ({
    signal,
  }) => {
    const reply = conditional({ status: 304 });
    const owing = new WeakSet<Socket>();
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const { method = '', url: path = '', headers } = request;
        const { status = 200, headers: more = {} } = reply({ method, path, headers, body: '' }) as ReplyHead;
        const { socket } = request;
        if (owing.delete(socket)) socket.write('<Error/>');
        else if (status === 304) {
          if (when === 'before the next response') owing.add(socket);
          const body = when === 'with it' ? '<Error/>' : '';
          socket.write(`HTTP/1.1 304 Not Modified\r\nContent-Length: 8\r\n\r\n${body}`);
        } else response.writeHead(status, { ...more, 'content-length': 0 }).end();
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    try {
      const { port } = server.address() as AddressInfo;
      const store = open(`http://127.0.0.1:${port}`);
      assert.is((await store.put('a', Buffer.from('one'), { ifNoneMatch: '*', signal })).etag, '1');
      const again = store.put('a', Buffer.from('one'), { ifNoneMatch: '*', signal });
      await assert.rejectsWith(again, 'STORE_CONFLICT', /a already exists/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
}

interface ReplyHead {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server that accepts parts of any length and refuses to complete them unless all but the last have one length. */
function uniform(): (asked: Asked) => Reply {
  const lengths = new Map<string, number>();
  const answers: Readonly<Record<string, (asked: Asked) => Reply>> = {
    POST: ({ path, headers }) => {
      if (!path.includes('uploadId='))
        return xml(200, '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>');
      if (headers['if-none-match'] === '*') return error(412, 'PreconditionFailed');
      const parts = [...lengths.entries()].toSorted(([a], [b]) => Number(a) - Number(b)).map(([, length]) => length);
      lengths.clear();
      return new Set(parts.slice(0, -1)).size > 1
        ? error(400, 'InvalidPart')
        : xml(200, '<CompleteMultipartUploadResult><ETag>"2"</ETag></CompleteMultipartUploadResult>');
    },
    PUT: ({ path, headers }) => {
      const [, part] = /partNumber=(\d+)/.exec(path) ?? [];
      const [, from, to] = /bytes=(\d+)-(\d+)/.exec(String(headers['x-amz-copy-source-range'])) ?? [];
      const condition = headers['if-match'] ?? headers['if-none-match'];
      if (headers['x-amz-copy-source-if-match'] === `"${'0'.repeat(32)}"`) return error(412, 'PreconditionFailed');
      if (part === undefined && condition !== undefined) return error(412, 'PreconditionFailed');
      const length = from === undefined ? Number(headers['content-length'] ?? 0) : Number(to) - Number(from) + 1;
      if (part !== undefined && !path.includes('/probe')) lengths.set(part, length);
      return headers['x-amz-copy-source'] === undefined
        ? { status: 200, headers: { etag: '"1"' } }
        : xml(200, '<CopyPartResult><ETag>"1"</ETag></CopyPartResult>');
    },
  };
  return (asked) => answers[asked.method]?.(asked) ?? { status: 200, headers: { etag: '"2"' } };
}

test('where parts must have one length, an object is uploaded instead of composed, from then on at once', async ({
  signal,
}) => {
  await using server = await startServer(uniform());
  const store = open(server.url);
  const size = 20 * MIB;
  let copied = 0;
  const body = {
    ...uploadOf(patterned(size), MIB),
    copies: [{ at: MIB, length: 18 * MIB, place: store.place, key: 'a', etag: '1', offset: 0 }],
    onCopied: (bytes: number) => {
      copied += bytes;
    },
  };
  const completions = (): number =>
    server.log.filter(({ method, path }) => method === 'POST' && path.includes('/b?uploadId=')).length;
  assert.is((await store.put('b', body, { metadata: { n: '1' }, signal })).etag, '2');
  assert.is(completions(), 2);
  assert.is(copied, 0);
  await store.put('b', body, { metadata: { n: '1' }, signal });
  assert.is(completions(), 3);
});

test.run();
