/** Releases in real servers of the S3 protocol: promoted by the server, listed, mended and removed. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { promote, sourceRelease, type PromoteOptions, type PromoteResult } from '../../src/ship/release/promote.ts';
import { prune } from '../../src/ship/release/prune.ts';
import { reindex } from '../../src/ship/release/reindex.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { specOf } from '../support/bundles.ts';
import { collect, collectItems } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { lockedPackage } from '../support/described.ts';
import { noise, writePackage } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { countKinds, s3ErrorBody, startS3Proxy } from '../support/s3-proxy.ts';
import { madePackage, publishAs, readableRelease } from '../support/releases.ts';
import { patterned, uploadOf } from '../support/store-conformance.ts';
import { tree, type Tree } from '../support/tree.ts';
import {
  BUCKET,
  S3_SERVERS,
  s3Kind,
  s3Suite,
  startS3,
  type S3Server,
  type S3ServerName,
} from './support/s3-servers.ts';

async function promoteTo(
  to: Store,
  from: Store,
  release: string,
  signal: AbortSignal,
  options: Partial<PromoteOptions> = {},
): Promise<PromoteResult> {
  const source = await sourceRelease(from, { release: undefined, signal });
  return promote(source, {
    to,
    release,
    deep: false,
    stream: false,
    dryRun: false,
    jobs: 4,
    report: noReport,
    signal,
    ...options,
  });
}

const SERVERS = Object.keys(S3_SERVERS) as S3ServerName[];
for (const name of SERVERS) {
  const test = s3Suite(name, `releases in ${name}`, SERVERS);
  if (test === undefined) continue;
  let box: Tree;
  let server: S3Server;
  const open = (prefix: string): Store =>
    createS3Store(`s3://${BUCKET}/${prefix}`, { endpoint: server.url, report: noReport });

  test.before(async () => {
    box = await tree();
    server = await startS3(name, box.path);
  });
  test.after(async () => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test(`${name}: a release goes from staging to dist without its packages passing through here`, async ({ signal }) => {
    const [staging, real] = [open('staging'), open('dist')];
    const files = [await madePackage(box, 'a', '1', 'a'), await madePackage(box, 'b', '1', 'b')];
    await publishAs(staging, 's1', files, signal, { commit: 'abc1234' });
    const put: string[] = [];
    const dist: Store = {
      ...real,
      put: async (key, ...rest) => {
        put.push(key);
        return real.put(key, ...rest);
      },
    };
    const result = await promoteTo(dist, staging, 'v1', signal, { deep: true });
    assert.equal(
      result.packages.map(({ outcome }) => outcome),
      ['copied', 'copied'],
    );
    assert.ok(!put.some((key) => key.endsWith('.tar.gz')), put.join());
    assert.is(await readableRelease(dist, signal), 'v1');
    const [from, to] = [await staging.head('s1/a-1.tar.gz', { signal }), await dist.head('v1/a-1.tar.gz', { signal })];
    assert.is(to?.metadata['gitsha'], 'abc1234');
    if (name === 'versitygw') assert.match(from?.checksum ?? '', /^crc32:/);
    if (from?.checksum !== undefined && s3Kind(name).plainCopies !== true) assert.is(to?.checksum, from.checksum);
    const again = await promoteTo(dist, staging, 'v1', signal);
    assert.ok(again.packages.every(({ outcome }) => outcome === 'present'));
  });

  test(`${name}: SBOM and provenance of a package that lies there, with the commit that publishing has noted`, async ({
    signal,
  }) => {
    const { name: addon, version, files, extra } = lockedPackage();
    const path = box.at('web-1.0.0.tar.gz');
    const published = { path, addon: await writePackage(path, addon, version, files, extra) };
    await publishAs(open('described'), 'r1', [published], signal, { commit: 'abc1234' });
    const env = { AWS_ENDPOINT_URL_S3: server.url };
    const address = `s3://${BUCKET}/described/r1/web-1.0.0.tar.gz`;
    const [far, near] = [
      await runCommand(['sbom', address], box.path, env),
      await runCommand(['sbom', path], box.path),
    ];
    assert.is(far.stdout, near.stdout, far.stderr);
    const stated = await runCommand(['provenance', address], box.path, env);
    assert.is(stated.exitCode, 0, stated.stderr);
    assert.match(await readFile(`${path}.provenance.json`, 'utf8'), '[{"digest":{"gitCommit":"abc1234"}},');
  });

  test(`${name}: the channels of a release are read from where they are`, async ({ signal }) => {
    const store = open('channels');
    await publishAs(store, 'r1', [await madePackage(box, 'web', '1.0.0', 'one')], signal, { channels: ['stable'] });
    const env = { AWS_ENDPOINT_URL_S3: server.url };
    const root = `s3://${BUCKET}/channels`;
    const places = [`${root}/channels/stable.yaml`, `${root}/r1/channels/stable.yaml`];
    const { exitCode, stdout, stderr } = await runCommand(
      ['channel', 'explain', 'web', ...places, '--kubernetes', 'v1.31.2'],
      box.path,
      env,
    );
    assert.is(exitCode, 0, stderr);
    assert.is(stdout.split('applies package web-1.0.0.tar.gz').length, 3);
  });

  test(`${name}: signed by every command that makes a release, a bundle is proved; a catalog that was changed is refused`, async ({
    signal,
  }) => {
    await using own = await tree({
      'addons/web/1.0.0/Manifest': 'asset words ./words\n',
      'addons/web/1.0.0/words': noise(300_000),
      'addons/web/1.0.0/install.sh': 'web() { :; }\n',
      'installer.yaml': specOf({ web: 'latest' }),
    });
    const env = { AWS_ENDPOINT_URL_S3: server.url };
    const done = async (...words: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await runCommand(words, own.path, env);
      assert.is(exitCode, 0, `${words.join(' ')}: ${stderr}`);
      return stdout;
    };
    const [staging, dist] = [`s3://${BUCKET}/signed-staging`, `s3://${BUCKET}/signed-dist`];
    for (const key of ['our', 'their']) await done('keygen', key);
    await done('publish', '--to', staging, '--release', 'v1', '--sign', 'our.key', '--expires', '30d');
    assert.match(await done('sign', '--store', staging, '--key', 'our.key', '--expires', '60d'), 'v1 is signed as');
    await done(
      'promote',
      '--from',
      staging,
      '--to',
      dist,
      '--key',
      'our.pub',
      '--sign',
      'their.key',
      '--expires',
      '2w',
    );
    for (const [store, key] of [
      [staging, 'our.pub'],
      [dist, 'their.pub'],
    ] as const) {
      await done('bundle', 'installer.yaml', '--from', store, '--key', key, '--dry-run', '--out', `${key}.json`);
    }
    const words = ['bundle', 'installer.yaml', '--from', dist, '--key'] as const;
    const wrong = await runCommand([...words, 'our.pub', '-o', 'wrong.tar.gz'], own.path, env);
    assert.is(wrong.exitCode, 30, wrong.stderr);
    if (name === 'versitygw') {
      await done(...words, 'their.pub', '-o', 'b.tar.gz');
      await done('verify', 'b.tar.gz');
    }
    const store = open('signed-dist');
    const key = 'v1/index.json';
    const { etag, body } = await store.get(key, { signal });
    const text = (await collect(body)).toString();
    await store.put(key, Buffer.from(text.replace(/"size":(\d)/, '"size":9$1')), { ifMatch: etag, signal });
    const release = (await collect((await store.get('VERSION', { signal })).body)).toString().trim();
    assert.is(release, 'v1');
    const changed = await runCommand([...words, 'their.pub', '-o', 'changed.tar.gz'], own.path, env);
    assert.is(changed.exitCode, 30, changed.stderr);
    assert.not.ok((await readdir(own.path)).some((one) => /wrong|changed/.test(one)));
  });

  test(`${name}: of forty packages two have changed: one listing, two uploads, copies, and little else`, async ({
    signal,
  }) => {
    await using proxy = await startS3Proxy(server.url);
    const store = createS3Store(`s3://${BUCKET}/forty`, { endpoint: proxy.url, report: noReport });
    const made = async (at: number, content: string) => {
      const file = await madePackage(box, `p${at}`, '1', `${content} ${at}`);
      return { ...file, inputs: { saw: content } };
    };
    const numbers = Array.from({ length: 40 }, (_, at) => at);
    const first = await Promise.all(numbers.map(async (at) => made(at, 'old')));
    const options = { commit: 'abc1234', jobs: 4, carry: true, release: undefined };
    await publishAs(store, '', first, signal, options);
    const changed = [await made(3, 'new'), await made(17, 'new')];
    const before = proxy.log.length;
    const result = await publishAs(store, '', changed, signal, options);
    const asked = proxy.log.slice(before);
    const counts = countKinds(asked);
    assert.is(counts['ListObjectsV2'], 1, JSON.stringify(counts));
    assert.is(asked.filter(({ kind, path }) => kind === 'PutObject' && path.includes('.tar.gz')).length, 2);
    assert.is((counts['UploadPartCopy'] ?? 0) + (counts['CopyObject'] ?? 0), 40);
    // Where a server ignores conditions, or does not pin the source of a copy, each copy is looked at first.
    const looks = { versitygw: 2, moto: 2 + 38 + 2, rclone: 200, minio: 2, seaweedfs: 2 }[name];
    assert.ok((counts['HeadObject'] ?? 0) <= looks, JSON.stringify(counts));
    assert.equal([result.packages.length, result.latest], [40, 2]);
    assert.is(await readableRelease(store, signal), result.release);
    assert.is((await store.head(`${result.release}/p1-1.tar.gz`, { signal }))?.metadata['gitsha'], 'abc1234');
    assert.is((await store.head('p3-1.tar.gz', { signal }))?.metadata['digest'], changed[0]?.addon.digest);
  });

  test(`${name}: between a folder and S3 the bytes pass through here, with leave`, async ({ signal }) => {
    await mkdir(box.at('folder'));
    const folder = createFolderStore(box.at('folder'));
    await publishAs(folder, 'f1', [await madePackage(box, 'c', '1', 'c')], signal);
    const to = open('from-folder');
    await assert.rejectsWith(promoteTo(to, folder, 'v1', signal), 'UNSUPPORTED', /cannot copy/);
    await promoteTo(to, folder, 'v1', signal, { stream: true, deep: true });
    assert.is(await readableRelease(to, signal), 'v1');
    await promoteTo(folder, to, 'f2', signal, { stream: true });
    assert.is(await readableRelease(folder, signal), 'f2');
  });

  test(`${name}: uploads that never ended are given up by pruning, a week later`, async ({ signal }) => {
    if (s3Kind(name).hidesUploads === true) return;
    await using proxy = await startS3Proxy(server.url);
    const store = createS3Store(`s3://${BUCKET}/sweep`, { endpoint: proxy.url, report: noReport });
    await publishAs(store, 'r1', [await madePackage(box, 'a', '1', 'a')], signal);
    const data = patterned(20_000_003);
    proxy.fail(/POST .*uploadId=/, { status: 400, body: s3ErrorBody('InvalidRequest') });
    const cut = store.put('r2/b-1.tar.gz', uploadOf(data), { ifNoneMatch: '*', digest: digestOf(data), signal });
    await assert.rejectsWith(cut, 'FETCH_FAILED');
    proxy.heal();
    const options = { keep: 1, olderThan: undefined, dryRun: false, jobs: 2, report: noReport, signal };
    const later = new Date(Date.now() + 8 * 24 * 3_600_000);
    // To this one every upload was begun years ago.
    if (name !== 'moto') assert.is((await prune(store, { ...options, now: new Date() })).uploads, 0);
    assert.is((await prune(store, { ...options, now: later, dryRun: true })).uploads, 1);
    assert.is((await prune(store, { ...options, now: later })).uploads, 1);
    assert.is((await prune(store, { ...options, now: later })).uploads, 0);
    await store.put('r2/b-1.tar.gz', uploadOf(data), { ifNoneMatch: '*', digest: digestOf(data), signal });
  });

  test(`${name}: a damaged catalog comes back, and old releases go`, async ({ signal }) => {
    const store = open('mend');
    await publishAs(store, 'r1', [await madePackage(box, 'a', '1', 'a')], signal);
    // Servers date objects by whole seconds.
    const { modified = new Date(0) } = (await collectItems(store.list('r1/index.json', { signal })))[0] ?? {};
    assert.ok(Math.abs(modified.getTime() - Date.now()) < 3_600_000, String(modified));
    await publishAs(store, 'r2', [await madePackage(box, 'b', '1', 'b')], signal);
    const { etag } = (await store.head('r2/index.json', { signal })) ?? {};
    await store.put('r2/index.json', Buffer.from('{'), { ifMatch: etag, signal });
    const options = { release: undefined, dryRun: false, jobs: 2, signal };
    const { was, packages, lost } = await reindex(store, options);
    assert.equal([was, packages, lost], ['damaged', 2, []]);
    assert.is(await readableRelease(store, signal), 'r2');
    const rule = { keep: 1, olderThan: undefined, now: new Date(), dryRun: false, jobs: 2, report: noReport, signal };
    const { kept, pruned } = await prune(store, rule);
    assert.is(kept.length + pruned.length, 2);
    assert.is(await readableRelease(store, signal), 'r2');
    const left = await collectItems(store.list('r1/', { signal }));
    assert.is(left.length, pruned.length === 1 ? 0 : 4);
  });

  test.run();
}
