/**
 * Work on stores in S3 that ends in the middle: a publisher that the system kills, and releases whose server refuses
 * everything from one request on. Whatever was done before, the same call again completes it.
 */
import { execa } from 'execa';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { digestOf } from '../../src/core/digest.ts';
import { importExternal } from '../../src/ship/release/import-external.ts';
import { promote, sourceRelease } from '../../src/ship/release/promote.ts';
import { prune } from '../../src/ship/release/prune.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { compiledModule } from '../support/compiled.ts';
import { collect, collectItems } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { CUTS_SHARE, thrownBy } from '../support/faulty-store.ts';
import { noise, writePackage } from '../support/packages.ts';
import { madePackage, publishAs, readableRelease } from '../support/releases.ts';
import { s3ErrorBody, startS3Proxy, type S3Proxy, type S3Request } from '../support/s3-proxy.ts';
import { patterned } from '../support/store-conformance.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, cannotServe, startS3, type S3Server } from './support/s3-servers.ts';

// soak: refusals from each request on
const test = suite('interrupted work in S3', { timeoutMs: 400_000 });

/** Not asked again by the client. */
const REFUSAL = { status: 400, body: s3ErrorBody('InvalidRequest') } as const;
const PART = 6 << 20;

const reason = cannotServe('versitygw');
if (reason !== undefined) {
  test.skip('everything', reason);
} else {
  let box: Tree;
  let server: S3Server;
  let proxy: S3Proxy;
  const direct = (prefix: string): Store =>
    createS3Store(`s3://${BUCKET}/${prefix}`, { endpoint: server.url, report: noReport });
  const failing = (prefix: string): Store =>
    createS3Store(`s3://${BUCKET}/${prefix}`, { endpoint: proxy.url, report: noReport });

  test.before(async () => {
    box = await tree();
    server = await startS3('versitygw', box.path);
    proxy = await startS3Proxy(server.url);
  });
  test.after(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test('a publisher killed by the system in the middle of an upload goes on with the parts that are there', async ({
    signal,
  }) => {
    const data = patterned(90_000_000);
    await writeFile(box.at('package'), data);
    const words = [
      compiledModule('test/support/upload-once.ts'),
      proxy.url,
      `s3://${BUCKET}/killed`,
      'k',
      box.at('package'),
    ];
    const isPart = ({ kind }: S3Request): boolean => kind === 'UploadPart';
    const running = execa('node', words, { reject: false, cancelSignal: signal });
    while (proxy.log.filter((request) => isPart(request) && request.answered).length < 4) {
      if (running.exitCode !== null) break;
      await pause(1);
    }
    running.kill('SIGKILL');
    assert.is((await running).signal, 'SIGKILL');
    const held = proxy.log.filter((request) => isPart(request) && request.answered).length;
    assert.is(await direct('killed').head('k', { signal }), undefined);
    const before = proxy.log.length;
    assert.is((await execa('node', words, { cancelSignal: signal })).stdout, 'done');
    const again = proxy.log.slice(before).filter(isPart);
    const sent = again.reduce((sum, { bytes }) => sum + bytes, 0);
    assert.ok(held >= 4 && sent <= data.byteLength - held * PART, `${sent} bytes sent again, ${held} parts were there`);
    const { body } = await direct('killed').get('k', { signal });
    assert.is(digestOf(await collect(body)), digestOf(data));
  });

  test('a publish that goes on says what it has sent, and what was there', async ({ signal }) => {
    const path = box.at('large-1.tar.gz');
    const files = [
      { path: 'install.sh', data: 'large() { :; }\n' },
      { path: 'assets/blob', data: noise(60_000_000) },
    ];
    const large = { path, addon: await writePackage(path, 'large', '1', files) };
    const small = await madePackage(box, 'small', '1', 'small');
    const isPart = ({ kind }: S3Request): boolean => kind === 'UploadPart';
    proxy.fail(/^PUT .*[?&]partNumber=(?:[5-9]|\d\d)/, REFUSAL);
    await thrownBy(publishAs(failing('goes-on'), 'r1', [small, large], signal));
    proxy.heal();
    const before = proxy.log.length;

    const result = await publishAs(failing('goes-on'), 'r1', [small, large], signal);

    const parts = proxy.log.slice(before).filter(isPart);
    const sent = parts.reduce((sum, { bytes }) => sum + bytes, 0);
    const [one, other] = result.packages;
    assert.equal([one?.outcome, one?.sent], ['present', 0]);
    assert.equal([other?.outcome, other?.sent], ['uploaded', sent]);
    const { size } = await stat(path);
    assert.ok(sent > 0 && sent < size, `${sent} of ${size} bytes`);
    assert.equal([result.bytesUp, result.bytesPresent], [sent, size - sent + (one?.size ?? 0)]);
  });

  /**
   * Refuses everything from one request of `once` on, at a sample of them, after an attempt in which nothing is refused: that
   * one must make more than `least`.
   */
  const atRefusals = async (
    least: number,
    once: (store: (prefix: string) => Store, cut: number) => Promise<unknown>,
  ): Promise<void> => {
    const before = proxy.log.length;
    assert.is(await once(failing, 0), undefined);
    const requests = proxy.log.length - before;
    assert.ok(requests > least, `only ${requests} requests`);
    const points = Array.from({ length: requests }, (_, index) => index + 1);
    for (const cut of sampleOf(points, CUTS_SHARE)) {
      proxy.failAfter(cut - 1, REFUSAL);
      await once(failing, cut);
      proxy.heal();
    }
  };

  test('a publish that is refused from any request on leaves the old release, and is completed', async ({ signal }) => {
    const made = async (name: string, text: string) => madePackage(box, name, '1', `${text} ${name}`);
    const first = await Promise.all(['a', 'b', 'c'].map(async (name) => made(name, 'old')));
    const changed = [await made('b', 'new')];
    await atRefusals(20, async (store, at) => {
      const prefix = `publish-${at}`;
      await publishAs(direct(prefix), 'r1', first, signal);
      const failed = await thrownBy(publishAs(store(prefix), 'r2', changed, signal));
      proxy.heal();
      assert.match((await readableRelease(direct(prefix), signal)) ?? '', /^r[12]$/);
      const result = await publishAs(direct(prefix), 'r2', changed, signal);
      assert.is(await readableRelease(direct(prefix), signal), 'r2');
      assert.is((await direct(prefix).head('b-1.tar.gz', { signal }))?.metadata['digest'], changed[0]?.addon.digest);
      assert.is(result.packages.length, 3);
      return failed;
    });
  });

  test('a promotion that is refused from any request on leaves the old release, and is completed', async ({
    signal,
  }) => {
    const staging = direct('promote-staging');
    await publishAs(
      staging,
      's1',
      [await madePackage(box, 'a', '1', 'one'), await madePackage(box, 'b', '1', 'b')],
      signal,
    );
    await publishAs(staging, 's2', [await madePackage(box, 'a', '1', 'two')], signal);
    const options = { deep: false, stream: false, dryRun: false, jobs: 2, report: noReport, signal };
    await atRefusals(20, async (store, at) => {
      const prefix = `promote-${at}`;
      const release = async (to: Store, from: Store, name: string) =>
        promote(await sourceRelease(from, { release: name, signal }), { ...options, to, release: `v${name}` });
      await release(direct(prefix), staging, 's1');
      const failed = await thrownBy(release(store(prefix), store('promote-staging'), 's2'));
      proxy.heal();
      assert.match((await readableRelease(direct(prefix), signal)) ?? '', /^vs[12]$/);
      await release(direct(prefix), staging, 's2');
      assert.is(await readableRelease(direct(prefix), signal), 'vs2');
      const latest = await direct(prefix).head('a-1.tar.gz', { signal });
      assert.is(
        latest?.metadata['sha256'],
        (await direct(prefix).head('vs2/a-1.tar.gz', { signal }))?.metadata['sha256'],
      );
      return failed;
    });
  });

  test('a prune that is refused from any request on never hurts the current release, and is completed', async ({
    signal,
  }) => {
    const packages = await Promise.all(['a', 'b'].map(async (name) => madePackage(box, name, '1', `prune ${name}`)));
    const other = await madePackage(box, 'c', '1', 'prune c');
    const options = { keep: 1, olderThan: undefined, dryRun: false, jobs: 2, report: noReport, signal };
    // Servers date objects by whole seconds, and what is as new as the current release stays.
    const dated = (store: Store): Store => ({
      ...store,
      async *list(...args) {
        for await (const object of store.list(...args)) {
          yield { ...object, modified: new Date(object.key.startsWith('r1/') ? 1000 : 2000) };
        }
      },
    });
    await atRefusals(10, async (store, at) => {
      const prefix = `prune-${at}`;
      await publishAs(direct(prefix), 'r1', [...packages, other], signal);
      await publishAs(direct(prefix), 'r2', packages, signal, { carry: false });
      const now = new Date();
      const failed = await thrownBy(prune(dated(store(prefix)), { ...options, now }));
      proxy.heal();
      assert.is(await readableRelease(direct(prefix), signal), 'r2');
      await prune(dated(direct(prefix)), { ...options, now });
      assert.is(await readableRelease(direct(prefix), signal), 'r2');
      const left = (await collectItems(direct(prefix).list('', { signal }))).map(({ key }) => key);
      assert.ok(!left.some((key) => key.startsWith('r1/')), left.join());
      assert.ok(left.includes('a-1.tar.gz'));
      return failed;
    });
  });

  test('a server that fails now and then makes a promotion slower, nothing else', async ({ signal }) => {
    const [from, to] = [failing('shaky-staging'), failing('shaky-dist')];
    proxy.heal();
    await publishAs(
      from,
      's1',
      [await madePackage(box, 'a', '1', 'shaky a'), await madePackage(box, 'b', '1', 'b')],
      signal,
    );
    const faults = [
      [/POST .*uploadId=/, 'lose answer'],
      [/PUT .*VERSION/, 'lose answer'],
      [/PUT .*index\.json/, { status: 503, body: s3ErrorBody('SlowDown') }],
      [/GET .*list-type=2/, { status: 500, body: s3ErrorBody('InternalError') }],
      [/HEAD /, { status: 503 }],
      [/GET .*index\.json/, 'reset answer'],
    ] as const;
    const options = { deep: true, stream: false, dryRun: false, jobs: 2, report: noReport, signal };
    for (const [index, [which, fault]] of faults.entries()) {
      proxy.fail(which, fault, 1);
      const source = await sourceRelease(from, { release: 's1', signal });
      const { release } = await promote(source, { ...options, to, release: `v${index}` });
      proxy.heal();
      assert.is(await readableRelease(to, signal), release);
    }
  });

  test('external add-ons come into S3, once, and a changed one is refused', async ({ signal }) => {
    const store = direct('external-bucket');
    const { path } = await madePackage(box, 'acme', '1.0.0', 'external');
    const digest = digestOf(await readFile(path));
    const offer = { name: 'acme', version: '1.0.0', url: 'https://packages.example/acme.tar.gz', range: '*', digest };
    const offers = [{ ...offer, isPrerelease: false }];
    const options = { store, fetch: async () => ({ path, digest }), dryRun: false, jobs: 2, report: noReport, signal };
    assert.is((await importExternal(offers, options)).versions[0]?.outcome, 'imported');
    assert.is((await importExternal(offers, options)).versions[0]?.outcome, 'present');
    const keys = (await collectItems(store.list('', { signal }))).map(({ key }) => key);
    assert.equal(keys, ['external/acme-1.0.0.tar.gz', 'external/addon-registry.json']);
    assert.is((await store.head('external/acme-1.0.0.tar.gz', { signal }))?.metadata['sha256'], digest);
    const other = offers.map((one) => ({ ...one, digest: digestOf('other') }));
    await assert.rejectsWith(importExternal(other, options), 'STORE_CONFLICT', /a different SHA-256/);
  });
}

test.run();
