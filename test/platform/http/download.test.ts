import { download, type Downloaded, type DownloadRequest } from '../../../src/platform/http/download.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { createHttp, type Http } from '../../../src/platform/http/http.ts';
import * as assert from '../../support/assert.ts';
import { collector, quickHttp } from '../../support/client.ts';
import { answers, endsShort, ignoresRange, neverEnds, redirects, resetsAtHalf } from '../../support/faults.ts';
import { binaryLike } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles, startServer, type Fault } from '../../support/web-server.ts';

const test = suite('net/download');
const BODY = binaryLike(1_000_000, 'download', 1);

async function fetchTo(
  http: Http,
  url: string,
  signal: AbortSignal,
  more: Partial<DownloadRequest> = {},
): Promise<{ readonly result: Downloaded; readonly body: Buffer }> {
  const { write, body } = collector();
  const result = await download(http, { doing: 'fetch it', url, write, ...more }, { signal });
  return { result, body: body() };
}

function same(body: Buffer, from = 0): void {
  assert.ok(body.equals(BODY.subarray(from)), `${body.byteLength} bytes, or other ones`);
}

test('a body arrives whole, with what is known of it', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  const { result, body } = await fetchTo(http, `${server.url}/a?x=1`, signal, { expectedSize: BODY.byteLength });
  same(body);
  const { size, etag, lastModified, finalUrl } = result;
  assert.equal(
    [size, etag, lastModified, finalUrl],
    [BODY.byteLength, '"1000000-a"', undefined, `${server.url}/a?x=1`],
  );
});

test('a transfer that resets at half again and again goes on by Range each time', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY }, { faults: [resetsAtHalf({ times: 3 })] });
  await using http = await quickHttp();
  const { body } = await fetchTo(http, `${server.url}/a`, signal);
  same(body);
  const ranges = server.log.map(({ headers }) => headers['range']);
  assert.is(ranges.length, 4);
  assert.is(ranges[0], undefined);
  for (const { headers } of server.log.slice(1)) {
    assert.match(String(headers['range']), /^bytes=\d+-$/);
    assert.is(headers['if-range'], '"1000000-a"');
  }
});

test('a part of a body arrives alone, also from a server that ignores Range, and after a break', async ({ signal }) => {
  const faults = [resetsAtHalf({ times: 1 }), ignoresRange(BODY, { path: /whole/ })];
  await using server = await serveFiles({ a: BODY, whole: BODY }, { faults });
  await using http = await quickHttp();
  for (const path of ['a', 'whole']) {
    const wanted = { from: 1000, until: 301_000, expectedSize: BODY.byteLength, expectedEtag: `"1000000-${path}"` };
    const { body } = await fetchTo(http, `${server.url}/${path}`, signal, wanted);
    assert.ok(body.equals(BODY.subarray(1000, 301_000)), path);
  }
  assert.is(server.log[0]?.headers['range'], 'bytes=1000-300999');
  const { body } = await fetchTo(http, `${server.url}/a`, signal, { until: 10 });
  assert.ok(body.equals(BODY.subarray(0, 10)));
});

test('another body than the one that was named is not begun', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  const { write, body } = collector();
  const request = { doing: 'fetch it', url: `${server.url}/a`, write, expectedEtag: '"other"' };
  await assert.rejectsWith(download(http, request, { signal }), 'FETCH_FAILED', /changed while it was being fetched/);
  assert.is(body().byteLength, 0);
});

test('a short body is continued', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY }, { faults: [endsShort({ times: 1 })] });
  await using http = await quickHttp();
  same((await fetchTo(http, `${server.url}/a`, signal)).body);
});

test('a body that always ends short is given up after the attempts', async ({ signal }) => {
  const drip = answers({ status: 200, headers: { 'content-length': '100' }, body: 'x', sending: { closeAt: 1 } });
  await using server = await serveFiles({}, { faults: [drip] });
  await using http = await quickHttp();
  const error = await assert.rejectsWith(fetchTo(http, server.url, signal), 'FETCH_FAILED', /of 100 bytes, tried 4/);
  assert.match(error.hint ?? '', /again/);
});

test('what is there already is not fetched again', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  const { result, body } = await fetchTo(http, `${server.url}/a`, signal, {
    from: 400_000,
    expectedEtag: '"1000000-a"',
  });
  same(body, 400_000);
  assert.is(result.size, BODY.byteLength);
  assert.is(server.log[0]?.headers['range'], 'bytes=400000-');
  const complete = await fetchTo(http, `${server.url}/a`, signal, { from: 1_000_000, expectedSize: 1_000_000 });
  assert.is(complete.body.byteLength, 0);
  assert.is(server.log.length, 1);
  const unknown = await fetchTo(http, `${server.url}/a`, signal, { from: 1_000_000 });
  assert.is(unknown.result.size, 1_000_000);
});

test('a server that ignores Range is read past what is there', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY }, { faults: [ignoresRange(BODY)] });
  await using http = await quickHttp();
  same(
    (await fetchTo(http, `${server.url}/a`, signal, { from: 123_456, expectedSize: BODY.byteLength })).body,
    123_456,
  );
});

test('a body that changed meanwhile starts again from its first byte, or fails without a way to', async ({
  signal,
}) => {
  await using server = await serveFiles({ a: BODY });
  await using http = await quickHttp();
  let { write, body } = collector();
  const restart = async (): Promise<void> => {
    ({ write, body } = collector());
  };
  const url = `${server.url}/a`;
  const old = { doing: 'fetch it', url, from: 1000, expectedEtag: '"old"' } as const;
  await download(http, { ...old, write: (chunk) => write(chunk), restart }, { signal });
  same(body());
  await assert.rejectsWith(fetchTo(http, url, signal, old), 'FETCH_FAILED', /changed while it was being fetched/);
});

test('an address that stands for one content is continued whatever the validators say', async ({ signal }) => {
  let count = 0;
  const renamed: Fault = (_asked, regular) => {
    count += 1;
    const headers = { ...regular.headers, etag: `"${count}"` };
    return { ...regular, headers, sending: count === 1 ? { resetAt: 500_000 } : 'whole' };
  };
  await using server = await serveFiles({ a: BODY }, { faults: [renamed] });
  await using http = await quickHttp();
  same((await fetchTo(http, `${server.url}/a`, signal, { immutable: true })).body);
  assert.is(server.log[1]?.headers['if-range'], undefined);
});

test('a body longer than expected is refused, and one without end is cut at once', async ({ signal }) => {
  await using server = await serveFiles({ a: BODY });
  await using endless = await serveFiles({ a: '' }, { faults: [neverEnds()] });
  await using http = await quickHttp();
  await assert.rejectsWith(
    fetchTo(http, `${server.url}/a`, signal, { expectedSize: 10 }),
    'FETCH_FAILED',
    /has 1000000 bytes, expected 10/,
  );
  for (const more of [{ expectedSize: 100_000 }, { limit: 100_000 }]) {
    const { write, body } = collector();
    await assert.rejectsWith(
      fetchTo(http, `${endless.url}/a`, signal, { ...more, write }),
      'FETCH_FAILED',
      /more than 100000 bytes/,
    );
    assert.ok(body().byteLength <= 100_000);
  }
});

for (const [what, reply] of [
  ['another range', { status: 206, headers: { 'content-range': 'bytes 600-999/1000' }, body: 'x'.repeat(400) }],
  ['a range that contradicts itself', { status: 206, headers: { 'content-range': 'bytes 5-2/1000' }, body: 'x' }],
  ['a range of no form', { status: 206, headers: { 'content-range': 'items 1' }, body: 'x' }],
  ['no range', { status: 206, body: 'x' }],
] as const) {
  test(`a part with ${what} is refused`, async ({ signal }) => {
    await using server = await serveFiles({}, { faults: [answers(reply)] });
    await using http = await quickHttp();
    await assert.rejectsWith(fetchTo(http, server.url, signal, { from: 500 }), 'FETCH_FAILED', /sent/);
  });
}

test('a part that nobody asked for is refused', async ({ signal }) => {
  const part = answers({ status: 206, headers: { 'content-range': 'bytes 0-0/9' }, body: 'x' });
  await using server = await serveFiles({}, { faults: [part] });
  await using http = await quickHttp();
  await assert.rejectsWith(fetchTo(http, server.url, signal), 'FETCH_FAILED', /not requested/);
});

test('503 twice and 429 with Retry-After are waited for, 404 is not', async ({ signal }) => {
  const busy = answers({ status: 503 }, { times: 2 });
  const later = answers({ status: 429, headers: { 'retry-after': '0' } }, { times: 1 });
  await using server = await serveFiles({ a: BODY }, { faults: [busy, later] });
  await using http = await quickHttp();
  same((await fetchTo(http, `${server.url}/a`, signal)).body);
  const asked = server.log.length;
  await assert.rejectsWith(fetchTo(http, `${server.url}/b`, signal), 'NOT_FOUND', /no such file/);
  assert.is(server.log.length, asked + 1);
});

test('a long wait that a server requests ends a download at once', async ({ signal }) => {
  const later = answers({ status: 503, headers: { 'retry-after': '86400' } });
  await using server = await serveFiles({ a: BODY }, { faults: [later] });
  await using http = await createHttp({ env: {} });
  await assert.rejectsWith(fetchTo(http, `${server.url}/a`, signal), 'FETCH_FAILED', /asks to wait 24 h/);
  assert.is(server.log.length, 1);
});

test('each attempt begins at the first address, not where it was led before', async ({ signal }) => {
  await using target = await serveFiles({ a: BODY }, { faults: [resetsAtHalf({ times: 1 })] });
  let tickets = 0;
  const ticket = (): string => `http://localhost:${target.port}/a?ticket=${(tickets += 1)}`;
  await using server = await serveFiles({}, { faults: [redirects(ticket)] });
  await using http = await quickHttp();
  same((await fetchTo(http, `${server.url}/a`, signal)).body);
  assert.equal(
    target.log.map(({ path }) => path),
    ['/a?ticket=1', '/a?ticket=2'],
  );
});

test('reading waits for a writer that asks for time', async ({ signal }) => {
  const large = binaryLike(8_000_000, 'large', 1);
  await using server = await startServer(() => ({ status: 200, body: large }));
  await using http = await quickHttp();
  let writing = 0;
  const { write, body } = collector();
  const slow = async (chunk: Uint8Array): Promise<void> => {
    writing += 1;
    assert.is(writing, 1);
    await new Promise((resolve) => setImmediate(resolve));
    write(chunk);
    writing -= 1;
  };
  await fetchTo(http, server.url, signal, { write: slow });
  assert.ok(body().equals(large));
});

test('a writer that needs only a moment, each time, does not starve the connection', async ({ signal }) => {
  const large = binaryLike(8_000_000, 'large', 1);
  await using server = await startServer(() => ({ status: 200, body: large }));
  await using http = await quickHttp();
  const { write, body } = collector();
  const sizes: number[] = [];
  const brief = async (chunk: Uint8Array): Promise<void> => {
    sizes.push(chunk.byteLength);
    write(chunk);
  };
  await fetchTo(http, server.url, signal, { write: brief });
  assert.ok(body().equals(large));
  assert.not.ok(sizes.includes(0));
});

for (const [when, write] of [
  [
    'at once',
    (): undefined => {
      throw new CurlewError('NO_SPACE', 'full');
    },
  ],
  [
    'later',
    async (): Promise<void> => {
      throw new CurlewError('NO_SPACE', 'full');
    },
  ],
] as const) {
  test(`a writer that fails ${when} ends the transfer with its own error`, async ({ signal }) => {
    await using server = await serveFiles({ a: BODY });
    await using http = await quickHttp();
    await assert.rejectsWith(fetchTo(http, `${server.url}/a`, signal, { write }), 'NO_SPACE', /^full$/);
    assert.is(server.log.length, 1);
  });
}

test('an abort in the middle ends the transfer', async () => {
  await using server = await serveFiles({ a: '' }, { faults: [neverEnds()] });
  await using http = await quickHttp();
  const stop = new AbortController();
  const write = (): undefined => {
    stop.abort(new CurlewError('CANCELLED', 'cancelled'));
    return undefined;
  };
  await assert.rejectsWith(fetchTo(http, `${server.url}/a`, stop.signal, { write }), 'CANCELLED');
});

test('an empty body is a body', async ({ signal }) => {
  await using server = await serveFiles({ a: '' });
  await using http = await quickHttp();
  assert.is((await fetchTo(http, `${server.url}/a`, signal)).result.size, 0);
  assert.is((await fetchTo(http, `${server.url}/a`, signal, { expectedSize: 0 })).result.size, 0);
});

test.run();
