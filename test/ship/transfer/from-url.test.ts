import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import type { HttpOptions } from '../../../src/platform/http/http.ts';
import { fetchUrl, type UrlBody } from '../../../src/ship/transfer/from-url.ts';
import { pathsBeside } from '../../../src/ship/transfer/partial-file.ts';
import * as assert from '../../support/assert.ts';
import { quickHttp } from '../../support/client.ts';
import { answers, drips, endsShort, ignoresRange, neverEnds, redirects, resetsAtHalf } from '../../support/faults.ts';
import { noise } from '../../support/packages.ts';
import { patterned } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { ranged, startServer, type Asked, type Fault, type Reply, type WebServer } from '../../support/web-server.ts';

const test = suite('transfer: a URL', { timeoutMs: 60_000 });
const MIB = 1 << 20;
const BODY = noise(6 * MIB, 1);
const OTHER = noise(6 * MIB, 2);
const ETAG = { etag: '"1"' };

interface Given {
  readonly digest?: Digest | undefined;
  readonly limit?: number;
  readonly http?: Partial<HttpOptions>;
  readonly onBytes?: (bytes: number) => void;
  readonly signal: AbortSignal;
}

interface Fetched extends UrlBody {
  /** Bytes of the file, by the changes that were reported. */
  readonly reported: number;
  readonly announced: number;
}

async function fetchTo(folder: string, url: string, given: Given): Promise<Fetched> {
  await using http = await quickHttp(given.http);
  let [reported, announced] = [0, 0];
  const onBytes = (bytes: number): void => {
    reported += bytes;
    given.onBytes?.(bytes);
  };
  const onSize = (bytes: number): void => void (announced = bytes);
  const check = (digest: Digest): void => {
    if (given.digest === undefined || given.digest === digest) return;
    throw new CurlewError('DIGEST_MISMATCH', `got ${digest}`);
  };
  const { digest, limit = 2 ** 30, signal } = given;
  const paths = pathsBeside(join(folder, 'got'));
  const file = { doing: 'get it', url, paths, digest, check, limit, force: true };
  const body = await fetchUrl(http, file, { onBytes, onSize, signal });
  return { ...body, reported, announced };
}

/** A server of one body with these validators. */
async function serving(body: Uint8Array, headers: Reply['headers'], ...faults: readonly Fault[]): Promise<WebServer> {
  return startServer((asked) => ranged(asked, { status: 200, headers: headers ?? {}, body }), { faults });
}

/** Leaves a folder as a process does that is killed after so many bytes have been written. */
async function killedAt(
  box: Tree,
  at: number,
  headers: Reply['headers'],
  signal: AbortSignal,
  given?: WebServer,
): Promise<string> {
  const [first, killed] = [box.at('first'), box.at('killed')];
  await mkdir(first, { recursive: true });
  await mkdir(killed);
  await using own = await serving(BODY, headers);
  const server = given ?? own;
  const stop = new AbortController();
  let written = 0;
  const onBytes = (bytes: number): void => {
    written += bytes;
    if (written < at || stop.signal.aborted) return;
    const [from, to] = [pathsBeside(join(first, 'got')), pathsBeside(join(killed, 'got'))];
    copyFileSync(from.partial, to.partial);
    if (existsSync(from.note)) copyFileSync(from.note, to.note);
    stop.abort(new CurlewError('CANCELLED', 'killed'));
  };
  const fetching = fetchTo(first, server.url, { onBytes, signal: AbortSignal.any([signal, stop.signal]) });
  await assert.rejectsWith(fetching, 'CANCELLED');
  return killed;
}

const rangeOf = (asked: Asked | undefined): string => String(asked?.headers['range'] ?? '');

async function isComplete(folder: string, body: Uint8Array): Promise<void> {
  assert.ok((await readFile(join(folder, 'got'))).equals(body), 'all bytes are right');
  assert.equal(await readdir(folder), ['got']);
}

test('a body arrives with one request, and with what the server reports of it', async ({ signal }) => {
  await using box = await tree();
  await using server = await serving(BODY, { ...ETAG, 'last-modified': 'Mon, 02 Jan 2006 15:04:05 GMT' });
  const { size, digest, etag, lastModified, reported, announced } = await fetchTo(box.path, server.url, { signal });
  assert.equal([size, digest, etag], [BODY.byteLength, digestOf(BODY), '"1"']);
  assert.is(lastModified, 'Mon, 02 Jan 2006 15:04:05 GMT');
  assert.equal([reported, announced], [BODY.byteLength, BODY.byteLength]);
  assert.is(server.log.length, 1);
  await isComplete(box.path, BODY);
});

for (const [title, fault] of [
  ['resets the connection', resetsAtHalf({ times: 3 })],
  ['ends early', endsShort({ times: 2 })],
  ['is busy for a while', answers({ status: 503 }, { times: 2 })],
  [
    'ignores Range after a break',
    (
      (count = 0) =>
      (asked: Asked, regular: Reply) => {
        count += 1;
        if (count > 1) return ignoresRange(BODY)(asked, regular);
        return { ...regular, sending: { resetAt: 2 * MIB } };
      }
    )(),
  ],
] as const) {
  test(`a server that ${title} is resumed in the same run`, async ({ signal }) => {
    await using box = await tree();
    await using server = await serving(BODY, ETAG, fault);
    const { reported } = await fetchTo(box.path, server.url, { signal });
    assert.is(reported, BODY.byteLength);
    await isComplete(box.path, BODY);
  });
}

for (const at of [1, 2 * MIB, 5 * MIB, 6 * MIB]) {
  test(`killed after ${at} bytes, the next run loses at most 4 MiB`, async ({ signal }) => {
    await using box = await tree();
    const folder = await killedAt(box, at, ETAG, signal);
    await using server = await serving(BODY, ETAG);
    await fetchTo(folder, server.url, { signal });
    await isComplete(folder, BODY);
    const first = Number(/^bytes=(\d+)-$/.exec(rangeOf(server.log[0]))?.[1] ?? 0);
    assert.ok(first >= at - 4 * MIB, `resumed at ${first}`);
    assert.ok(at < 5 * MIB || first > 0, `resumed at ${first}`);
  });
}

test('after a power cut, bytes that were written but not synced are fetched again', async ({ signal }) => {
  await using box = await tree();
  const folder = await killedAt(box, 5 * MIB, ETAG, signal);
  const { partial, note } = pathsBeside(join(folder, 'got'));
  const [last = ''] = (await readFile(note, 'utf8')).trim().split('\n').slice(-1);
  const [[, synced] = [0, 0]] = (JSON.parse(last) as { readonly have: readonly [number, number][] }).have;
  assert.ok(synced > 0 && synced < 5 * MIB);
  const bytes = await readFile(partial);
  await writeFile(partial, bytes.fill(0, synced));
  await using server = await serving(BODY, ETAG);
  await fetchTo(folder, server.url, { signal });
  await isComplete(folder, BODY);
  assert.is(rangeOf(server.log[0]), `bytes=${synced}-`);
});

test('a file that has changed since then starts over, whether or not the server honors If-Range', async ({
  signal,
}) => {
  const blind: Fault = (asked, regular) =>
    regular.status === 200 && asked.headers['range'] !== undefined
      ? ranged({ ...asked, headers: { ...asked.headers, 'if-range': undefined } }, { ...regular, body: OTHER })
      : undefined;
  for (const headers of [{ etag: '"2"' }, { etag: 'W/"1"' }, {}]) {
    for (const faults of [[], [blind], [ignoresRange(OTHER)]]) {
      await using box = await tree();
      const folder = await killedAt(box, 5 * MIB, ETAG, signal);
      await using server = await serving(OTHER, headers, ...faults);
      const { reported } = await fetchTo(folder, server.url, { signal });
      assert.is(reported, OTHER.byteLength);
      await isComplete(folder, OTHER);
    }
  }
});

test('without a strong entity tag the next run starts over', async ({ signal }) => {
  for (const headers of [{ etag: 'W/"1"' }, {}, { 'last-modified': 'Mon, 02 Jan 2006 15:04:05 GMT' }]) {
    await using box = await tree();
    const folder = await killedAt(box, 5 * MIB, headers, signal);
    await using server = await serving(OTHER, headers);
    await fetchTo(folder, server.url, { signal });
    await isComplete(folder, OTHER);
    assert.equal(server.log.map(rangeOf), ['']);
  }
});

test('a file that changes during the run, at the same size and with no validator, is not pieced together', async ({
  signal,
}) => {
  for (const headers of [{}, { etag: 'W/"1"' }]) {
    await using box = await tree();
    let count = 0;
    await using server = await startServer((asked) => {
      count += 1;
      if (count === 1) return { status: 200, headers, body: BODY, sending: { resetAt: 3 * MIB } };
      return ranged(asked, { status: 200, headers, body: OTHER });
    });
    await fetchTo(box.path, server.url, { signal });
    await isComplete(box.path, OTHER);
  }
});

test('a server that breaks off each time and sends no validator is given up, with the reason', async ({ signal }) => {
  await using box = await tree();
  await using server = await serving(BODY, {}, (_, regular) => ({ ...regular, sending: { closeAt: 3 * MIB } }));
  await assert.rejectsWith(
    fetchTo(box.path, server.url, { signal }),
    'FETCH_FAILED',
    /stops early and cannot be resumed: the server sends neither a strong ETag nor Last-Modified/,
  );
});

test('a known digest allows bytes of any version, and repairs wrong ones with one more request', async ({ signal }) => {
  await using box = await tree();
  const digest = digestOf(BODY);
  const folder = await killedAt(box, 5 * MIB, {}, signal);
  await using server = await serving(BODY, {});
  await fetchTo(folder, server.url, { digest, signal });
  await isComplete(folder, BODY);
  assert.match(rangeOf(server.log[0]), /^bytes=[1-9]\d+-$/);

  await using damaged = await tree({ 'got.partial': OTHER.subarray(0, 2 * MIB) });
  const { reported } = await fetchTo(damaged.path, server.url, { digest, signal });
  assert.is(reported, BODY.byteLength);
  await isComplete(damaged.path, BODY);
  assert.equal(server.log.slice(1).map(rangeOf), [`bytes=${2 * MIB}-`, '']);
});

test('wrong bytes from the first to the last are no reason to ask again, and get no name', async ({ signal }) => {
  await using box = await tree();
  await using server = await serving(OTHER, ETAG);
  const fetching = fetchTo(box.path, server.url, { digest: digestOf(BODY), signal });
  await assert.rejectsWith(fetching, 'DIGEST_MISMATCH');
  assert.is(server.log.length, 1);
  assert.not.ok((await readdir(box.path)).includes('got'));
});

test('sizes that a server makes up, and bodies without an end, are refused', async ({ signal }) => {
  const longer = answers({
    status: 200,
    headers: { ...ETAG, 'content-length': '9000000' },
    body: BODY,
    sending: { closeAt: MIB },
  });
  for (const [fault, message] of [
    [longer, /sent the bytes from|ended after \d+ of 9000000 bytes/],
    [
      answers({ status: 200, headers: { 'content-length': '99999999999' }, body: '' }),
      /returned more than 10000000 bytes/,
    ],
    [neverEnds(), /returned more than 10000000 bytes/],
  ] as const) {
    await using box = await tree();
    await using server = await serving(BODY, ETAG, fault);
    await assert.rejectsWith(fetchTo(box.path, server.url, { limit: 10_000_000, signal }), 'FETCH_FAILED', message);
    assert.not.ok((await readdir(box.path)).includes('got'));
  }
});

test('a server that stands still or drips is given up in time, and the next run resumes', async ({ signal }) => {
  await using box = await tree();
  const halts: Fault = ({ headers }, regular) => ({
    ...regular,
    sending: { haltAt: headers['range'] === undefined ? 3 * MIB : 0 },
  });
  await using still = await serving(BODY, ETAG, halts);
  const http = { timeouts: { idleMs: 100 } };
  await assert.rejectsWith(fetchTo(box.path, still.url, { http, signal }), 'FETCH_FAILED');
  await using slow = await serving(BODY, ETAG, drips());
  const dripping = { timeouts: { minRate: { bytes: 1_000_000, ms: 200 } } };
  await assert.rejectsWith(fetchTo(box.path, slow.url, { http: dripping, signal }), 'FETCH_FAILED');
  await using good = await serving(BODY, ETAG);
  await fetchTo(box.path, good.url, { signal });
  await isComplete(box.path, BODY);
  assert.match(rangeOf(good.log[0]), /^bytes=[1-9]\d+-$/);
});

test('a redirect is followed in each request, and no secret reaches the disk', async ({ signal }) => {
  await using box = await tree();
  await using target = await serving(BODY, ETAG, resetsAtHalf({ times: 1 }));
  await using server = await serving(BODY, ETAG, redirects(`${target.url}/real?token=topsecret`));
  const url = `http://user:topsecret@${server.host}/a?sig=topsecret`;
  let notes = '';
  const onBytes = (): void => {
    const { note } = pathsBeside(box.at('got'));
    if (existsSync(note)) notes += readFileSync(note, 'utf8');
  };
  await fetchTo(box.path, url, { onBytes, signal });
  await isComplete(box.path, BODY);
  assert.is(target.log.length, 2);
  assert.ok(notes.includes(server.host));
  assert.not.match(notes, 'topsecret');
});

test('a partial file or note that another program left is resumed only as far as it is proved', async ({ signal }) => {
  await using server = await serving(BODY, ETAG);
  for (const note of ['', '{', '{"size":0,"digest":"sha256:0","etag":"\\"1\\""}', '{"format":2,"have":[[0,9]]}\n']) {
    await using box = await tree({ 'got.partial': OTHER.subarray(0, MIB), 'got.partial.json': note });
    const before = server.log.length;
    await fetchTo(box.path, server.url, { signal });
    await isComplete(box.path, BODY);
    assert.equal(server.log.slice(before).map(rangeOf), ['']);
  }
});

test('a note of a file that is gone does not vouch for the next one', async ({ signal }) => {
  const identity = { format: 1, from: 'x', etag: '"1"' };
  await using box = await tree({ 'got.partial.json': `${JSON.stringify({ ...identity, have: [[0, 5 * MIB]] })}\n` });
  await using server = await serving(BODY, ETAG);
  await fetchTo(box.path, server.url, { signal });
  await isComplete(box.path, BODY);
  assert.equal(server.log.map(rangeOf), ['']);
});

test('nor for the bytes of a run that was killed before its first checkpoint', async ({ signal }) => {
  const stale = { format: 1, from: 'x', etag: '"1"', have: [[0, 5 * MIB]] };
  await using server = await serving(BODY, ETAG);
  await using box = await tree({ 'first/got.partial.json': `${JSON.stringify({ ...stale, from: server.url })}\n` });
  const folder = await killedAt(box, MIB, ETAG, signal, server);
  const { partial } = pathsBeside(join(folder, 'got'));
  // Never synced, so a power cut may leave this.
  await writeFile(partial, (await readFile(partial)).fill(0));
  await fetchTo(folder, server.url, { signal });
  await isComplete(folder, BODY);
});

test('a server that says it has no more bytes than these must name the version', async ({ signal }) => {
  const refuses: Fault = ({ headers }) =>
    headers['range'] === undefined
      ? undefined
      : { status: 416, headers: { 'content-range': `bytes */${BODY.byteLength}` } };
  await using server = await serving(OTHER, { etag: '"2"' }, refuses);
  const note = { format: 1, from: server.url, etag: '"1"', have: [[0, BODY.byteLength]] };
  await using box = await tree({ 'got.partial': BODY, 'got.partial.json': `${JSON.stringify(note)}\n` });
  await fetchTo(box.path, server.url, { signal });
  await isComplete(box.path, OTHER);
});

test('bytes behind the last noted one are cut off', async ({ signal }) => {
  await using box = await tree();
  const folder = await killedAt(box, 5 * MIB, ETAG, signal);
  await appendFile(pathsBeside(join(folder, 'got')).partial, patterned(3 * MIB));
  await using server = await serving(BODY, ETAG);
  await fetchTo(folder, server.url, { signal });
  await isComplete(folder, BODY);
});

test.run();
