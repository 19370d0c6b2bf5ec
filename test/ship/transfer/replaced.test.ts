import { readdir, readFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { noise } from '../../support/packages.ts';
import { largePackage, pullTo } from '../../support/pulls.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { ranged, startServer, type WebServer } from '../../support/web-server.ts';

const test = suite('pull: a file that is replaced', { timeoutMs: 240_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';
const MIB = 1 << 20;
const OTHER = noise(3_000_000, 7);

/** A server whose file becomes another one after so many bytes. */
async function replacing(old: Uint8Array, next: Uint8Array, after: number): Promise<WebServer> {
  let sent = 0;
  return startServer((asked) => {
    const body = sent > after ? next : old;
    const headers = { etag: body === next ? '"next"' : '"old"' };
    const reply = ranged(asked, { status: 200, headers, body });
    if (asked.method === 'GET') sent += Buffer.from(reply.body ?? '').byteLength;
    return reply;
  });
}

test('a file that is replaced while it is fetched starts over; what both have in common is kept', async ({
  signal,
}) => {
  const next = largePackage('1.0.1', { blob3: noise(300_000, 99) });
  await using server = await replacing(WEB.bytes, next.bytes, 4_000_000);
  await using box = await tree();
  const { fetched, notes } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { connections: 1, signal });
  assert.ok((await readFile(box.at(NAME))).equals(next.bytes));
  assert.match(notes.join('\n'), 'has been replaced');
  assert.ok(fetched < WEB.bytes.byteLength + 3_000_000, String(fetched));
  assert.equal(await readdir(box.path), [NAME]);
});

test('so it does when it is replaced while the server is away', async ({ signal }) => {
  const next = largePackage('1.0.1', { blob4: noise(300_000, 98) });
  let [sent, body]: [number, Uint8Array] = [0, WEB.bytes];
  await using server = await startServer((asked) => {
    if (asked.method === 'GET' && sent > 4 * MIB && body === WEB.bytes) {
      body = next.bytes;
      return { status: 500 };
    }
    const reply = ranged(asked, { status: 200, headers: { etag: `"${body.byteLength}"` }, body });
    if (asked.method === 'GET') sent += Buffer.from(reply.body ?? '').byteLength;
    return reply;
  });
  await using box = await tree();
  const http = { retry: { attempts: 1, baseMs: 1, capMs: 5 } };
  const { fetched, notes } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { connections: 1, http, signal });
  assert.ok((await readFile(box.at(NAME))).equals(next.bytes));
  assert.match(notes.join('\n'), 'has been replaced');
  assert.ok(fetched < 11_000_000, String(fetched));
});

for (const sha256 of [undefined, digestOf(WEB.bytes), digestOf(OTHER)]) {
  const body = sha256 === digestOf(OTHER) ? OTHER : WEB.bytes;
  const what =
    body === OTHER ? 'any file with a sha256' : sha256 === undefined ? 'a package' : 'a package with a sha256';
  test(`${what} is whole even if each server of a CDN has an etag of its own`, async ({ signal }) => {
    let count = 0;
    await using server = await startServer((asked) => {
      const headers = { etag: `"${(count += 1)}"`, 'last-modified': new Date(count * 1000).toUTCString() };
      return ranged(asked, { status: 200, headers, body });
    });
    await using box = await tree();
    const { fetched } = await pullTo(box.at(NAME), [`${server.url}/${NAME}`], { sha256, signal });
    assert.ok((await readFile(box.at(NAME))).equals(body));
    assert.ok(fetched < body.byteLength * 1.1, String(fetched));
  });
}

test('a file that never stays the same is given up', async ({ signal }) => {
  const next = largePackage('1.0.0', { blob1: noise(2_500_001, 98) });
  let count = 0;
  await using server = await startServer((asked) => {
    count += 1;
    const { bytes: body } = count % 3 === 0 ? next : WEB;
    return ranged(asked, { status: 200, headers: { etag: `"${count}"` }, body });
  });
  await using box = await tree();
  await assert.rejectsWith(pullTo(box.at(NAME), [`${server.url}/${NAME}`], { signal }), 'STORE_CONFLICT');
});

test.run();
