import { createS3Store } from '../../../src/ship/store/s3.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { withVariables } from '../../support/environment.ts';
import { answers } from '../../support/faults.ts';
import { s3ErrorBody } from '../../support/s3-proxy.ts';
import { patterned, uploadOf } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { startServer, type Asked, type Reply } from '../../support/web-server.ts';

const test = suite('ship/store/s3-retry');
const OBJECT = { status: 200, headers: { etag: '"1"' }, body: 'hello' };

const keys = withVariables({ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'testsecret' });
test.after(() => {
  keys[Symbol.dispose]();
});
const open = (endpoint: string): Store => createS3Store('s3://bucket/dist', { endpoint, report: noReport });

for (const [status, requests] of [
  [500, 2],
  [520, 2],
  [529, 2],
  [501, 1],
] as const) {
  const does = requests === 1 ? 'fails' : 'is retried';
  test(`${status} of a server, or of a CDN in front of it, ${does}`, async ({ signal }) => {
    await using server = await startServer(() => OBJECT, { faults: [answers({ status }, { times: 1 })] });
    const asked = open(server.url).head('a', { signal });
    if (requests === 1) await assert.rejectsWith(asked, 'UNSUPPORTED');
    else assert.is((await asked)?.size, 5);
    assert.is(server.log.length, requests);
  });
}

const SIZE = 7_000_000;
const failed: Reply = { status: 500, body: s3ErrorBody('InternalError') };
const gone: Reply = { status: 404, body: s3ErrorBody('NoSuchUpload') };
const done: Reply = {
  status: 200,
  body: '<CompleteMultipartUploadResult><ETag>"2"</ETag></CompleteMultipartUploadResult>',
};

/** A server of one upload in parts, with these replies to CompleteMultipartUpload; the object exists from `existsAfter` on. */
function serveUpload(replies: readonly Reply[], existsAfter: number): (asked: Asked) => Reply {
  let completions = 0;
  return ({ method, path }) => {
    if (method === 'POST' && path.includes('uploadId=')) return replies[(completions += 1) - 1] ?? gone;
    if (method === 'POST') {
      const body = '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>';
      return { status: 200, body };
    }
    if (method !== 'HEAD') return { status: 200, headers: { etag: '"1"' } };
    if (completions < existsAfter) return { status: 404 };
    return { status: 200, headers: { etag: '"2"', 'x-amz-meta-n': '1', 'content-length': String(SIZE) } };
  };
}

for (const [title, replies, existsAfter] of [
  ['500 to the completion of an upload is retried', [failed, done], 2],
  ['status 200 with an error to the completion of an upload is retried', [{ ...failed, status: 200 }, done], 2],
  ['an upload that is complete in spite of a 500 counts as written', [failed, gone], 1],
  ['an upload that is gone after a 500, without an object, fails', [failed, gone], Infinity],
] as const) {
  test(title, async ({ signal }) => {
    await using server = await startServer(serveUpload(replies, existsAfter));
    const put = open(server.url).put('a', uploadOf(patterned(SIZE)), { metadata: { n: '1' }, signal });
    if (existsAfter === Infinity) await assert.rejectsWith(put, 'FETCH_FAILED', /its upload was aborted/);
    else assert.is((await put).etag, '2');
    const completions = server.log.filter(({ method, path }) => method === 'POST' && path.includes('uploadId='));
    assert.is(completions.length, 2);
  });
}

test.run();
