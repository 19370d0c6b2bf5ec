/** Real servers of the S3 protocol keep what every store promises. */
import { digestOf } from '../../src/core/digest.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { collect } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { startS3Proxy } from '../support/s3-proxy.ts';
import { patterned, testStore, uploadOf } from '../support/store-conformance.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, S3_SERVERS, s3Suite, startS3, type S3Server, type S3ServerName } from './support/s3-servers.ts';

const SERVERS = Object.keys(S3_SERVERS) as S3ServerName[];
for (const name of SERVERS) {
  const test = s3Suite(name, `a store in ${name}`, SERVERS);
  if (test === undefined) continue;
  const { conditions, exclusive } = S3_SERVERS[name];
  let box: Tree;
  let server: S3Server;
  let store: Store;
  const events: ProgressEvent[] = [];

  test.before(async () => {
    box = await tree();
    server = await startS3(name, box.path);
    store = createS3Store(`s3://${BUCKET}/dist`, { endpoint: server.url, report: (event) => events.push(event) });
  });
  test.after(async () => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  testStore(test, { name, store: () => store, exclusive });

  test(`${name}: another prefix of the bucket is another store, which can be copied from`, async ({ signal }) => {
    const staging = createS3Store(`s3://${BUCKET}/staging/`, { endpoint: server.url, report: noReport });
    const from = await staging.put('v1/k', Buffer.from('bytes'), { metadata: { n: '1' }, signal });
    assert.is(await store.head('v1/k', { signal }), undefined);
    const options = { from: staging.place, sourceIfMatch: from.etag, ifNoneMatch: '*', signal } as const;
    assert.equal((await store.copy('v1/k', 'v1/k', options)).metadata, { n: '1' });
    assert.is((await store.head('v1/k', { signal }))?.size, 5);
    const elsewhere = { ...options, from: { server: 's3:http://elsewhere', base: 'x' } };
    await assert.rejectsWith(store.copy('v1/k', 'v2/k', elsewhere), 'UNSUPPORTED');
  });

  // This one copies no parts.
  if (name !== 'rclone') {
    test(`${name}: what is larger than one copy may be is copied by parts, with a condition and without`, async ({
      signal,
    }) => {
      await using proxy = await startS3Proxy(server.url);
      const copyLimits = { whole: 8 << 20, part: 5 << 20 };
      const options = { endpoint: proxy.url, copyLimits, report: noReport };
      const small = createS3Store(`s3://${BUCKET}/dist`, options);
      const data = patterned(20_000_003);
      await small.put('parts/k', uploadOf(data), { metadata: { n: '1' }, signal });
      for (const ifNoneMatch of ['*', undefined] as const) {
        const to = `parts/${ifNoneMatch === undefined ? 'plain' : 'new'}`;
        const before = proxy.log.length;
        const copied = await small.copy('parts/k', to, { ifNoneMatch, signal });
        const asked = proxy.log.slice(before).filter(({ path }) => path.includes(`/${to}`));
        const kinds = asked.map(({ kind }) => kind).filter((kind) => kind !== 'HeadObject');
        const parts = Array.from({ length: 4 }, () => 'UploadPartCopy');
        assert.equal(kinds, ['CreateMultipartUpload', ...parts, 'CompleteMultipartUpload']);
        assert.equal([copied.size, copied.metadata], [data.byteLength, { n: '1' }]);
        assert.is(digestOf(await collect((await small.get(to, { signal })).body)), digestOf(data));
      }
      await assert.rejectsWith(small.copy('parts/k', 'parts/new', { ifNoneMatch: '*', signal }), 'STORE_CONFLICT');
    });
  }

  test(`${name}: a listing of more than one page is whole`, async ({ signal }) => {
    const keys = Array.from({ length: 1001 }, (_, index) => `pages/${String(index).padStart(4, '0')}`);
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => store.put(key, Buffer.from(key), { signal })));
    }
    const listed: string[] = [];
    for await (const { key } of store.list('pages/', { signal })) listed.push(key);
    assert.equal(listed, keys);
  });

  test(`${name}: ${conditions ? 'nothing is warned of' : 'that conditions are ignored is said once'}`, () => {
    const warnings = events.filter((event) => event.type === 'note');
    assert.is(warnings.length, conditions ? 0 : 1);
  });

  test.run();
}
