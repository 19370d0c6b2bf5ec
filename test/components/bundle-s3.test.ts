/** Bundles from stores in S3, and into them: what the server has already does not pass through this machine. */
import { readFile, rm, stat } from 'node:fs/promises';
import { bundleRange, type BundleSource } from '../../src/ship/bundle/write/bytes.ts';
import { writeBundle, writeBundleFile } from '../../src/ship/bundle/write/write-bundle.ts';
import { summarize } from '../../src/ship/bundle/bundle-plan.ts';
import { storeBundle } from '../../src/ship/bundle/write/store-bundle.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { planTestBundle, publishTestPackages, specOf, TOOL, type TestPackage } from '../support/bundles.ts';
import { collect } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { noise } from '../support/packages.ts';
import { s3ErrorBody, startS3Proxy, type S3Proxy } from '../support/s3-proxy.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, S3_SERVERS, s3Suite, startS3, type S3Server, type S3ServerName } from './support/s3-servers.ts';

const MIB = 1024 * 1024;
const shared = noise(6 * MIB, 2);
const PACKAGES: readonly TestPackage[] = [
  ['alpha', 6],
  ['beta', 12],
  ['gamma', 1],
].map(([name, size]) => ({
  name: String(name),
  version: '1.0.0',
  files: [
    { path: 'install.sh', data: `${name}() { :; }\n` },
    { path: 'images/blobs/sha256/a', data: shared },
    { path: 'images/blobs/sha256/b', data: noise(Number(size) * MIB, Number(size)) },
    { path: 'text', data: `${name} `.repeat(5000) },
  ],
}));
const SPEC = specOf({ alpha: '1.0.0', beta: '1.0.0', gamma: '1.0.0' });
const REFUSAL = { status: 403, body: s3ErrorBody('AccessDenied') };
const KEY = 'bundle.tar.gz';

const SERVERS: readonly S3ServerName[] = ['versitygw', 'moto', 'rclone'];
for (const name of SERVERS) {
  const test = s3Suite(name, `bundles in ${name}`, SERVERS);
  if (test === undefined) continue;
  let box: Tree;
  let server: S3Server;
  let proxy: S3Proxy;
  let source: Store;
  const { conditions: copiesParts } = S3_SERVERS[name];
  const into = (prefix: string): Store =>
    createS3Store(`s3://${BUCKET}/${prefix}`, { endpoint: proxy.url, report: noReport });
  const options = (signal: AbortSignal) => ({ force: false, verify: false, report: noReport, signal });
  const uploadsBegun = async (store: Store, signal: AbortSignal): Promise<number> =>
    (await store.sweepUploads?.(new Date(Date.now() + 86_400_000), { dryRun: true, signal })) ?? 0;

  test.before(async () => {
    const { signal } = new AbortController();
    box = await tree();
    server = await startS3(name, box.path, { prefixes: ['dist/r1'] });
    proxy = await startS3Proxy(server.url);
    source = await publishTestPackages(box, PACKAGES, signal, into('dist'));
    await publishTestPackages(box, PACKAGES, signal);
  });
  test.after(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test('equal plans give equal bytes: in a file, through a pipe, in the bucket, range by range', async ({ signal }) => {
    const planned = await planTestBundle(source, SPEC, signal);
    const { plan, sources } = planned;
    await writeBundleFile(plan, sources, box.at('from-s3'), { ...options(signal), verify: true });
    const expected = await readFile(box.at('from-s3'));
    assert.is(expected.byteLength, plan.splice.size);
    assert.ok(summarize(plan).linked >= 2 * shared.byteLength, 'hard links across packages');

    const local = await planTestBundle(createFolderStore(box.at('store')), SPEC, signal);
    assert.is(local.plan.splice.index.tocDigest, plan.splice.index.tocDigest);
    await writeBundleFile(local.plan, local.sources, box.at('from-folder'), options(signal));
    assert.ok((await readFile(box.at('from-folder'))).equals(expected), 'from a folder');

    const piped: Buffer[] = [];
    const write = async (piece: Uint8Array): Promise<void> => void piped.push(Buffer.from(piece));
    await writeBundle(plan, sources, write, {
      name: 'p',
      title: 'p',
      concurrency: 1,
      verify: false,
      report: noReport,
      signal,
    });
    assert.ok(Buffer.concat(piped).equals(expected), 'through a pipe');

    const ranges: Buffer[] = [];
    for (let offset = 0; offset < plan.splice.size; offset += 5_000_001) {
      const length = Math.min(5_000_001, plan.splice.size - offset);
      ranges.push(await collect(bundleRange(plan.splice, sources, { offset, length, signal })));
    }
    assert.ok(Buffer.concat(ranges).equals(expected), 'by ranges');

    for (const [prefix, { plan: onePlan, sources: one }] of [
      ['by-copies', planned],
      ['by-upload', local],
    ] as const) {
      await storeBundle(onePlan, one, { store: into(prefix), key: KEY }, { ...options(signal), verify: true });
      const { body, metadata } = await into(prefix).get(KEY, { signal });
      assert.ok((await collect(body)).equals(expected), prefix);
      assert.is(metadata['toc-digest'], plan.splice.index.tocDigest);
    }
    await rm(box.at('from-s3'));
    await rm(box.at('from-folder'));
  });

  test('no more than 5 MiB for each border of a run, and what is new, passes through this machine', async ({
    signal,
  }) => {
    const { plan, sources } = await planTestBundle(source, SPEC, signal);
    let read = 0;
    const counted = sources.map((one): BundleSource => ({
      ...one,
      async *read(...range) {
        for await (const chunk of one.read(...range)) {
          if (one.place !== undefined) read += chunk.byteLength;
          yield chunk;
        }
      },
    }));
    const before = proxy.log.length;
    await storeBundle(plan, counted, { store: into('counted'), key: KEY }, options(signal));
    const log = proxy.log.slice(before).filter(({ path }) => path.includes(`counted/${KEY}`));
    const sent = log.reduce((sum, { bytes }) => sum + bytes, 0);
    const { fresh, ranges, size } = summarize(plan);
    const borders = 2 * ranges.length * 5 * MIB;
    if (copiesParts) {
      assert.ok(log.filter(({ kind }) => kind === 'UploadPartCopy').length >= 2, 'parts are copied');
      assert.ok(read <= borders, `${read} bytes were read`);
      assert.ok(sent <= fresh + TOOL.bytes.byteLength + borders, `${sent} bytes were sent`);
      assert.ok(sent < size / 2, `${sent} of ${size} bytes were sent`);
    } else {
      assert.ok(sent >= size, 'everything is sent where the server does not copy parts');
    }
  });

  if (name === 'rclone') {
    test.run();
    continue;
  }

  test('a package that has changed since the plan stops it: into a bucket, into a file', async ({ signal }) => {
    const store = await publishTestPackages(box, PACKAGES, signal, into('changing'));
    const { plan, sources } = await planTestBundle(store, SPEC, signal);
    const other = Buffer.from(await readFile(box.at('out/alpha-1.0.0.tar.gz')));
    other[100_000] = (other[100_000] ?? 0) ^ 1;
    await into('changing').put('r1/alpha-1.0.0.tar.gz', other, { signal });
    const target = into('changed');
    const error = await assert.rejectsWith(
      storeBundle(plan, sources, { store: target, key: KEY }, options(signal)),
      'STORE_CONFLICT',
    );
    assert.match(error.hint ?? '', /plan it again/);
    assert.is(await target.head(KEY, { signal }), undefined);
    if (name === 'versitygw') assert.is(await uploadsBegun(target, signal), 0);
    const file = writeBundleFile(plan, sources, box.at('changed'), options(signal));
    assert.match((await assert.rejectsWith(file, 'STORE_CONFLICT')).hint ?? '', /plan it again/);
    assert.ok(await stat(box.at('changed')).catch(() => true), 'no file is left');
    // Planned anew it is the damaged one, which only a proof finds.
    const damaged = await planTestBundle(into('changing'), SPEC, signal);
    const proving = { ...options(signal), verify: true };
    const stored = storeBundle(damaged.plan, damaged.sources, { store: target, key: KEY }, proving);
    await assert.rejectsWith(stored, 'DIGEST_MISMATCH', /alpha/);
    const written = writeBundleFile(damaged.plan, damaged.sources, box.at('changed'), proving);
    await assert.rejectsWith(written, 'DIGEST_MISMATCH', /alpha/);
    assert.is(await target.head(KEY, { signal }), undefined);
  });

  if (name === 'moto') {
    test.run();
    continue;
  }

  test('an object that is there stays, unless it may be replaced', async ({ signal }) => {
    const { plan, sources } = await planTestBundle(source, SPEC, signal);
    const store = into('taken');
    await store.put(KEY, Buffer.from('mine'), { signal });
    const refused = storeBundle(plan, sources, { store, key: KEY }, options(signal));
    await assert.rejectsWith(refused, 'FILE_EXISTS', /the object already exists/);
    assert.is((await store.head(KEY, { signal }))?.size, 4);
    await storeBundle(plan, sources, { store, key: KEY }, { ...options(signal), force: true });
    assert.is((await store.head(KEY, { signal }))?.size, plan.splice.size);
  });

  test('cancelled under way it leaves neither an object nor an upload', async ({ signal }) => {
    const { plan, sources } = await planTestBundle(source, SPEC, signal);
    const stop = new AbortController();
    const store = into('cancelled');
    const report = ({ type }: { readonly type: string }): void => {
      if (type === 'step-progress') stop.abort(new CurlewError('CANCELLED', 'cancelled'));
    };
    const work = storeBundle(plan, sources, { store, key: KEY }, { ...options(stop.signal), report });
    await assert.rejectsWith(work, 'CANCELLED');
    assert.is(await store.head(KEY, { signal }), undefined);
    assert.is(await uploadsBegun(store, signal), 0);
  });

  test('refused from any request on there is nothing under the key, or all, and the next run does it', async ({
    signal,
  }) => {
    const { plan, sources } = await planTestBundle(source, SPEC, signal);
    let cuts = 0;
    for (let at = 0; ; at += 4) {
      const store = into(`cut-${at}`);
      proxy.failAfter(at, REFUSAL);
      const before = proxy.log.length;
      const error: unknown = await storeBundle(plan, sources, { store, key: KEY }, options(signal)).catch(
        (thrown: unknown) => thrown,
      );
      const asked = proxy.log.length - before;
      proxy.heal();
      if (error === undefined && asked <= at) break;
      cuts += 1;
      assert.instance(error, CurlewError);
      const left = await store.head(KEY, { signal });
      assert.ok(left === undefined || left.size === plan.splice.size, `after ${at} requests`);
      await storeBundle(plan, sources, { store, key: KEY }, { ...options(signal), force: true });
      assert.is((await store.head(KEY, { signal }))?.size, plan.splice.size);
    }
    assert.ok(cuts >= 1, `only ${cuts} cuts`);
  });

  test('ranges whose connection breaks are asked for again, from where they broke', async ({ signal }) => {
    const { plan, sources } = await planTestBundle(source, SPEC, signal);
    const expected = await collect(bundleRange(plan.splice, sources, { signal }));
    proxy.fail(/GET .*alpha/, 'reset answer', 5);
    await writeBundleFile(plan, sources, box.at('broken'), options(signal));
    proxy.heal();
    assert.ok((await readFile(box.at('broken'))).equals(expected));
    await rm(box.at('broken'));
  });

  test.run();
}
