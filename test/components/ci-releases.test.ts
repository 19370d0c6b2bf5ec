/** From a commit to staging and from its tag to production: the same steps, with the same results, in every kind of store. */
import { createHash } from 'node:crypto';
import { openStore } from '../../src/ship/store/open.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { collect } from '../support/bytes.ts';
import { addonFiles, ci, commit, git, repository } from '../support/ci.ts';
import { noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { BUCKET, leftOut, S3_KEYS, S3_SERVERS, startS3, type S3ServerName } from './support/s3-servers.ts';

const test = suite('staging and production in every kind of store', { timeoutMs: 180_000 });

const TAGS = ['v2026.11.21-0', 'v2026.11.21-1'] as const;
const servers = Object.keys(S3_SERVERS) as S3ServerName[];
const kinds = ['folder', ...servers] as const;

/** The time of a release, in its catalog and in the file for kURL's readers. */
const PUBLISHED = /(?<="_?published":\s*")[^"]+/g;

/** What readers can see below a prefix: keys with the digests of their bytes, times of releases aside. */
async function seen(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  const rows: string[] = [];
  for await (const { key } of store.list('', { signal })) {
    const found = await store.get(key, { signal });
    const hash = createHash('sha256');
    const bytes = await collect(found.body);
    hash.update(key.endsWith('.json') ? bytes.toString().replaceAll(PUBLISHED, 'TIME') : bytes);
    rows.push(`${key} ${hash.digest('hex')}`);
  }
  return rows.toSorted();
}

/** Two commits, each published and promoted by its tag. */
async function released(box: Tree, env: Readonly<Record<string, string>>): Promise<void> {
  const ok = async (...words: readonly string[]): Promise<void> => {
    const { exitCode, stdout, stderr } = await ci(box, words, env);
    assert.is(exitCode, 0, `${words.join(' ')}: ${stdout}${stderr}`);
    for (const secret of [S3_KEYS.AWS_SECRET_ACCESS_KEY]) assert.not.match(stdout + stderr, secret);
  };
  await ok('publish-staging');
  await git(box, 'tag', TAGS[0]);
  await ok('promote-production', TAGS[0]);
  await writeTree(box.path, { ...addonFiles('web', '1.1.0'), ...addonFiles('db', '1.0.0', 'other') });
  await commit(box, 'second');
  await git(box, 'tag', TAGS[1]);
  await ok('publish-staging');
  await ok('publish-staging');
  await ok('promote-production', TAGS[1]);
}

const results = new Map<string, readonly string[]>();

for (const kind of kinds) {
  const reason = kind === 'folder' ? undefined : leftOut(kind, servers);
  const name = `${kind}: two commits reach staging, and production by their tags`;
  if (reason !== undefined) {
    test.skip(name, reason);
    continue;
  }
  test(name, async ({ signal }) => {
    await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
    await using data = await tree();
    await using server = kind === 'folder' ? undefined : await startS3(kind, data.path);
    const base = server === undefined ? data.path : `s3://${BUCKET}`;
    const endpoint = server === undefined ? {} : { AWS_ENDPOINT_URL_S3: server.url, ...S3_KEYS };
    await released(box, { CURLEW_STAGING: `${base}/staging`, CURLEW_PRODUCTION: `${base}/dist`, ...endpoint });
    const options = { cwd: box.path, create: false, s3: { endpoint: server?.url }, report: noReport, signal };
    const rows: string[] = [];
    for (const place of ['staging', 'dist']) {
      for (const row of await seen(await openStore(`${base}/${place}`, options), signal)) rows.push(`${place}/${row}`);
    }
    assert.ok(rows.some((row) => row.startsWith(`dist/${TAGS[1]}/web-1.1.0.tar.gz `)));
    results.set(kind, rows);
  });
}

test('all of them hold the same keys with the same bytes, but for the times of releases', () => {
  const [first = [], ...rest] = results.values();
  assert.ok(first.length > 0 && rest.length > 0);
  for (const rows of rest) assert.equal(rows, first);
});

test.run();
