import { createS3Store } from '../../src/store/s3.ts';
import type { Store } from '../../src/store/store.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { answers } from '../support/faults.ts';
import { suite } from '../support/suite.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('store/s3-retry');
const OBJECT = { status: 200, headers: { etag: '"1"' }, body: 'hello' };

Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'testsecret' });
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

test.run();
