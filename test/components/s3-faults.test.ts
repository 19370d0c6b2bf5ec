/** What a store in S3 makes of servers, networks and credentials that fail. */
import { digestOf } from '../../src/core/digest.ts';
import type { CurlewError, ErrorCode } from '../../src/core/errors.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { collect, collectItems } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { s3ErrorBody, startS3Proxy, type S3Fault, type S3Proxy } from '../support/s3-proxy.ts';
import { patterned, uploadOf } from '../support/store-conformance.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, S3_KEYS, s3Suite, startS3, type S3Server, type S3ServerName } from './support/s3-servers.ts';

const LARGE = 40_000_003;
const PART = /PUT .*partNumber=/;

function fault(status: number, code: string): S3Fault {
  return { status, body: s3ErrorBody(code, `no, ${S3_KEYS.AWS_SECRET_ACCESS_KEY} https://h/p?X-Amz-Signature=hush`) };
}

const SERVERS: readonly S3ServerName[] = ['versitygw', 'moto'];
for (const name of SERVERS) {
  const test = s3Suite(name, `a store in ${name} that fails`, SERVERS);
  if (test === undefined) continue;
  let box: Tree;
  let server: S3Server;
  let proxy: S3Proxy;

  const open = (prefix: string, bucket = BUCKET, idleMs?: number): Store =>
    createS3Store(`s3://${bucket}/${prefix}`, { endpoint: proxy.url, idleMs, report: noReport });
  /** A store whose server has been tried already. */
  const warm = async (prefix: string, signal: AbortSignal): Promise<Store> => {
    proxy.heal();
    const store = open(prefix);
    await store.put('warm', Buffer.from('warm'), { ifNoneMatch: '*', signal });
    await store.copy('warm', 'warmer', { ifNoneMatch: '*', signal });
    return store;
  };
  const refused = async (work: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<CurlewError> => {
    const error = await assert.rejectsWith(work, code, message);
    assert.not.match(`${error.message} ${error.hint} ${String(error.cause)}`, /hush|testsecret/);
    return error;
  };

  test.before(async () => {
    box = await tree();
    server = await startS3(name, box.path);
    proxy = await startS3Proxy(server.url);
  });
  test.after(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test('503 SlowDown is asked again, and named when it does not end', async ({ signal }) => {
    const store = await warm('slow', signal);
    proxy.fail(/PUT .*\/k/, fault(503, 'SlowDown'), 2);
    await store.put('k', Buffer.from('k'), { ifNoneMatch: '*', signal });
    proxy.fail(/PUT .*\/l/, fault(503, 'SlowDown'));
    const error = await refused(store.put('l', Buffer.from('l'), { signal }), 'FETCH_FAILED', /slow down/);
    assert.match(error.hint ?? '', /--jobs/);
  });

  test('a reset in the middle of a part is sent again', async ({ signal }) => {
    const store = await warm('reset', signal);
    const data = patterned(LARGE);
    proxy.fail(PART, { resetRequestAt: 1_000_000 }, 3);
    await store.put('k', uploadOf(data), { ifNoneMatch: '*', digest: digestOf(data), signal });
    const { body } = await store.get('k', { signal });
    assert.is(digestOf(await collect(body)), digestOf(data));
  });

  test('an upload that was cut off is taken up again with what is there, and nothing else', async ({ signal }) => {
    const store = await warm('resume', signal);
    const data = patterned(LARGE);
    const options = { ifNoneMatch: '*', digest: digestOf(data), metadata: { digest: digestOf(data) } } as const;
    proxy.fail(/PUT .*partNumber=7/, { resetRequestAt: 1 });
    const cut = store.put('k', uploadOf(data), { ...options, signal });
    await refused(cut, 'FETCH_FAILED', /write k to/);
    proxy.heal();
    assert.is(await store.head('k', { signal }), undefined);
    const before = proxy.log.length;
    const again = open('resume');
    await again.put('k', uploadOf(data), { ...options, signal });
    const sent = proxy.log.slice(before).filter(({ method, path }) => PART.test(`${method} ${path}`));
    assert.ok(sent.length < 7, `${sent.length} parts were sent`);
    const { body, metadata } = await again.get('k', { signal });
    assert.is(digestOf(await collect(body)), digestOf(data));
    assert.equal(metadata, { digest: digestOf(data) });
    assert.equal(
      (await collectItems(again.list('', { signal }))).map(({ key }) => key),
      ['k', 'warm', 'warmer'],
    );
  });

  test('an upload is not taken up for other bytes or other metadata', async ({ signal }) => {
    const store = await warm('other', signal);
    const [one, two] = [patterned(LARGE, 1), Buffer.from(patterned(LARGE, 1))];
    two.writeUInt8(two.readUInt8(LARGE - 1) ^ 1, LARGE - 1);
    proxy.fail(/POST .*uploadId=/, fault(500, 'InternalError'));
    await refused(
      store.put('k', uploadOf(one), { digest: digestOf(one), metadata: { n: 'one' }, signal }),
      'FETCH_FAILED',
      /InternalError/,
    );
    proxy.heal();
    await store.put('k', uploadOf(two), { digest: digestOf(two), metadata: { n: 'two' }, signal });
    const { body, metadata } = await store.get('k', { signal });
    assert.is(digestOf(await collect(body)), digestOf(two));
    assert.is(metadata['n'], 'two');
  });

  test('a write whose answer was lost counts as done, not as a conflict', async ({ signal }) => {
    const store = await warm('lost', signal);
    proxy.fail(/PUT .*\/k/, 'lose answer', 1);
    const put = await store.put('k', Buffer.from('k'), { ifNoneMatch: '*', metadata: { n: '1' }, signal });
    assert.equal(put.metadata, { n: '1' });
    proxy.fail(/PUT .*\/k/, 'lose answer', 1);
    const swapped = await store.put('k', Buffer.from('2'), { ifMatch: put.etag, signal });
    assert.not.equal(swapped.etag, put.etag);
  });

  test('an upload and a copy whose last answers were lost count as done', async ({ signal }) => {
    const store = await warm('lost-parts', signal);
    const data = patterned(LARGE);
    const options = { ifNoneMatch: '*', digest: digestOf(data), metadata: { digest: digestOf(data) }, signal } as const;
    proxy.fail(/POST .*uploadId=/, 'lose answer', 1);
    const put = await store.put('k', uploadOf(data), options);
    proxy.fail(/POST .*uploadId=/, 'lose answer', 1);
    const copied = await store.copy('k', 'copy', { ifNoneMatch: '*', signal });
    proxy.heal();
    for (const { key, etag } of [put, copied]) {
      assert.is((await store.head(key, { signal }))?.etag, etag);
      assert.is(digestOf(await collect((await store.get(key, { signal })).body)), digestOf(data));
    }
    await refused(store.put('k', uploadOf(patterned(LARGE, 2)), options), 'STORE_CONFLICT', /k/);
  });

  test('status 200 with an error in the body is an error', async ({ signal }) => {
    const store = await warm('twohundred', signal);
    const data = patterned(LARGE);
    const failing: S3Fault = { status: 200, body: s3ErrorBody('InternalError') };
    proxy.fail(/POST .*uploadId=/, failing, 2);
    await store.put('k', uploadOf(data), { ifNoneMatch: '*', signal });
    proxy.fail(/PUT .*\/copy\?.*partNumber=/, failing);
    await refused(store.copy('warm', 'copy', { ifNoneMatch: '*', signal }), 'FETCH_FAILED', /InternalError/);
    proxy.fail(/PUT .*\/plain/, failing);
    await refused(store.copy('warm', 'plain', { signal }), 'FETCH_FAILED', /InternalError/);
    proxy.heal();
    assert.is(await store.head('copy', { signal }), undefined);
    assert.is(await store.head('plain', { signal }), undefined);
  });

  test('a list without an end is cut off, and so is an error without one', async ({ signal }) => {
    const store = await warm('endless', signal);
    proxy.fail(/GET .*list-type=2/, 'endless answer');
    await refused(
      collectItems(store.list('', { signal })),
      'FETCH_FAILED',
      /^cannot list s3:[^\n]*larger than \d+ bytes$/,
    );
    proxy.fail(/POST .*uploads/, 'endless answer');
    const put = store.put('k', uploadOf(patterned(LARGE)), { ifNoneMatch: '*', signal });
    await refused(put, 'FETCH_FAILED', /^cannot write k to [^\n]*larger than \d+ bytes$/);
  });

  test('an answer that stops coming is given up and asked for again from where it stopped', async ({ signal }) => {
    const store = await warm('stalled', signal);
    const data = patterned(3_000_000);
    await store.put('k', data, { signal });
    await store.put('small', Buffer.from('small'), { signal });
    const impatient = open('stalled', BUCKET, 300);
    proxy.fail(/GET .*\/k/, 'stall answer', 2);
    assert.is(digestOf(await collect((await impatient.get('k', { signal })).body)), digestOf(data));
    proxy.fail(/GET .*\/small/, 'stall answer', 1);
    assert.is(Buffer.from((await impatient.read('small', { limit: 10, signal }))?.data ?? []).toString(), 'small');
    proxy.fail(/GET .*\/k/, 'stall answer');
    const never = collect((await impatient.get('k', { signal })).body);
    await refused(never, 'FETCH_FAILED', /no data for 0\.3 seconds/);
    proxy.fail(/GET .*list-type=2/, 'stall answer');
    await refused(collectItems(impatient.list('', { signal })), 'FETCH_FAILED', /no data for/);
  });

  test('an answer that ends early is no answer', async ({ signal }) => {
    const store = await warm('short', signal);
    proxy.fail(/GET .*list-type=2/, 'truncate answer');
    await refused(collectItems(store.list('', { signal })), 'FETCH_FAILED', /list s3:/);
    const data = patterned(3_000_000);
    proxy.heal();
    await store.put('k', data, { signal });
    for (const kind of ['reset answer', 'truncate answer'] as const) {
      proxy.fail(/GET .*\/k/, kind, 2);
      const work = (async () => collect((await store.get('k', { signal })).body))();
      if (kind === 'reset answer') assert.is(digestOf(await work), digestOf(data));
      else await refused(work, 'FETCH_FAILED', /did not return the requested range/);
    }
  });

  for (const [title, status, code, expected, message, hint] of [
    ['a clock that is off', 403, 'RequestTimeTooSkewed', 'AUTH_FAILED', /clock/, /set the clock/],
    ['a right that lacks', 403, 'AccessDenied', 'AUTH_FAILED', /access was denied/, /s3:PutObject/],
    ['an unknown access key', 403, 'InvalidAccessKeyId', 'AUTH_FAILED', /access key/, /AWS_ACCESS_KEY_ID/],
    ['a session that has ended', 400, 'ExpiredToken', 'AUTH_FAILED', /expired/, /log in/],
    ['another region', 400, 'AuthorizationHeaderMalformed', 'USAGE', /region/, /--s3-region/],
    ['a bucket elsewhere', 301, 'PermanentRedirect', 'USAGE', /region/, /--s3-region/],
    ['a disk that is full', 507, 'InsufficientStorage', 'NO_SPACE', /no space/, undefined],
  ] as const) {
    test(`${title} is named, with what to do`, async ({ signal }) => {
      const store = await warm(`named/${code}`, signal);
      proxy.fail(/PUT .*\/k/, fault(status, code));
      const error = await refused(store.put('k', Buffer.from('k'), { signal }), expected, message);
      if (hint !== undefined) assert.match(error.hint ?? '', hint);
    });
  }

  test('a bucket that is not there is named by reading and by writing', async ({ signal }) => {
    proxy.heal();
    const store = open('dist', 'no-such-bucket');
    await refused(store.head('VERSION', { signal }), 'NOT_FOUND', /the bucket no-such-bucket does not exist/);
    await refused(
      store.put('k', Buffer.from('k'), { ifNoneMatch: '*', signal }),
      'NOT_FOUND',
      /the bucket .* does not exist/,
    );
    await refused(collectItems(store.list('', { signal })), 'NOT_FOUND', /the bucket .* does not exist/);
  });

  test('a server that is not there is named', async ({ signal }) => {
    const store = createS3Store(`s3://${BUCKET}/x`, { endpoint: 'http://127.0.0.1:1', report: noReport });
    const error = await refused(store.head('VERSION', { signal }), 'FETCH_FAILED', /the connection was refused/);
    assert.match(error.hint ?? '', /--s3-endpoint/);
  });

  if (name === 'versitygw') {
    test('where parts cannot be copied into an upload with a checksum, copies have none, and only the first one tries', async ({
      signal,
    }) => {
      const store = await warm('plain', signal);
      await store.put('k', Buffer.from('k'), { ifNoneMatch: '*', signal });
      proxy.fail(/PUT .*partNumber=1/, fault(400, 'InvalidArgument'), 1);
      for (const [to, tries] of [
        ['first', 2],
        ['second', 1],
      ] as const) {
        const before = proxy.log.length;
        assert.is((await store.copy('k', to, { ifNoneMatch: '*', signal })).size, 1);
        const kinds = proxy.log.slice(before).map(({ kind }) => kind);
        assert.is(kinds.filter((kind) => kind === 'UploadPartCopy').length, tries, kinds.join());
        assert.is(kinds.filter((kind) => kind === 'AbortMultipartUpload').length, tries - 1, kinds.join());
      }
      proxy.heal();
    });

    test('a wrong secret key is named', async ({ signal }) => {
      proxy.heal();
      const before = process.env['AWS_SECRET_ACCESS_KEY'];
      process.env['AWS_SECRET_ACCESS_KEY'] = 'testsecret-wrong';
      try {
        const error = await refused(open('x').head('VERSION', { signal }), 'AUTH_FAILED', /secret key/);
        assert.match(error.hint ?? '', /AWS_SECRET_ACCESS_KEY/);
      } finally {
        process.env['AWS_SECRET_ACCESS_KEY'] = before;
      }
    });
  }

  test.run();
}
