/** `curlew bundle` with stores in real servers of the S3 protocol, as a process of its own that may be killed. */
import { execa } from 'execa';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { createS3Store } from '../../src/ship/store/s3.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import { BUILT_MAIN as MAIN } from '../support/built.ts';
import { collect } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { cleanEnvironment, curlew, curlewOk, startCurlew, type Outcome } from '../support/curlew.ts';
import { noise } from '../support/packages.ts';
import { countKinds, startS3Proxy, type S3Proxy } from '../support/s3-proxy.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, S3_KEYS, s3Suite, startS3, type S3Server, type S3ServerName } from './support/s3-servers.ts';

const MIB = 1024 * 1024;
const DIST = `s3://${BUCKET}/dist`;
const SPEC = specOf({ alpha: '1.0.0', beta: '1.0.0' });

function packageOf(name: string, blob: Uint8Array): TestPackage {
  const files = [
    { path: 'install.sh', data: `${name}() { :; }\n` },
    { path: 'assets/blob', data: blob },
  ];
  return { name, version: '1.0.0', files };
}
const PACKAGES = [packageOf('alpha', noise(12 * MIB, 1)), packageOf('beta', noise(2 * MIB, 2))];

const SERVERS: readonly S3ServerName[] = ['versitygw', 'rclone'];
for (const name of SERVERS) {
  const test = s3Suite(name, `curlew bundle and ${name}`, SERVERS);
  if (test === undefined) continue;
  let box: Tree;
  let server: S3Server;
  let proxy: S3Proxy;
  const open = (prefix: string): Store =>
    createS3Store(`s3://${BUCKET}/${prefix}`, { endpoint: server.url, report: noReport });
  const options = (env: Readonly<Record<string, string>> = {}) => ({
    cwd: box.path,
    env: { ...S3_KEYS, AWS_ENDPOINT_URL_S3: proxy.url, ...env },
  });
  const bundle = async (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
    curlew(['bundle', ...words], { ...options(env), main: MAIN });
  const uploadsBegun = async (signal: AbortSignal): Promise<number> =>
    (await open('bundles').sweepUploads?.(new Date(Date.now() + 86_400_000), { dryRun: true, signal })) ?? 0;

  test.before(async () => {
    box = await tree({ 'installer.yaml': SPEC });
    await mkdir(box.at('s3'));
    server = await startS3(name, box.at('s3'), { prefixes: ['dist/r1', 'planned/r1'] });
    proxy = await startS3Proxy(server.url);
    const { signal } = new AbortController();
    await publishTestPackages(box, PACKAGES, signal, open('dist'));
    await curlewOk(['bundle', 'installer.yaml', '--from', DIST, '-o', 'file.tar.gz'], { ...options(), main: MAIN });
  });
  test.after(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test(`${name}: into a bucket, proved; it stays there until it may be replaced`, async ({ signal }) => {
    const target = `s3://${BUCKET}/bundles/b.tar.gz`;
    const words = ['installer.yaml', '--from', DIST, '-o', target];
    const first = await bundle([...words, '--verify']);
    assert.is(first.exitCode, 0, first.stderr);
    assert.match(first.stdout, `${target}: `);
    const expected = await readFile(box.at('file.tar.gz'));
    const { body, etag } = await open('bundles').get('b.tar.gz', { signal });
    assert.ok((await collect(body)).equals(expected));
    const second = await bundle(words);
    assert.is(second.exitCode, 24, second.stderr);
    assert.match(second.stderr, /the object already exists\n.*--force/);
    assert.is((await open('bundles').head('b.tar.gz', { signal }))?.etag, etag);
    if (name !== 'versitygw') return;
    await open('bundles').put('b.tar.gz', Buffer.from('other'), { signal });
    const third = await bundle([...words, '--force']);
    assert.is(third.exitCode, 0, third.stderr);
    assert.is((await open('bundles').head('b.tar.gz', { signal }))?.size, expected.byteLength);
    assert.is(await uploadsBegun(signal), 0);
  });

  test(`${name}: buckets that are not there are told, on either side`, async () => {
    const into = await bundle(['installer.yaml', '--from', DIST, '-o', 's3://nobody.example/b.tar.gz']);
    assert.is(into.exitCode, 14, into.stderr);
    assert.match(into.stderr, 'the bucket nobody.example does not exist');
    const from = await bundle(['installer.yaml', '--from', 's3://nobody.example/dist', '-o', 'x.tar.gz']);
    assert.is(from.exitCode, 14, from.stderr);
    assert.match(from.stderr, 'the bucket nobody.example does not exist');
  });

  test(`${name}: a package that is another one than in the saved plan stops it`, async ({ signal }) => {
    const store = await publishTestPackages(box, PACKAGES, signal, open('planned'));
    const from = ['--from', `s3://${BUCKET}/planned`];
    const planned = await bundle(['installer.yaml', ...from, '--dry-run', '--out', 'plan.json']);
    assert.is(planned.exitCode, 0, planned.stderr);
    // It is as long as before, and with the same table of contents: only the etag tells.
    const bytes = await readFile(box.at('out/alpha-1.0.0.tar.gz'));
    bytes[1_000_000] = (bytes[1_000_000] ?? 0) ^ 1;
    await store.put('r1/alpha-1.0.0.tar.gz', bytes, { signal });
    for (const target of ['planned.tar.gz', `s3://${BUCKET}/bundles/planned.tar.gz`]) {
      const { exitCode, stderr } = await bundle(['--from-plan', 'plan.json', ...from, '-o', target]);
      assert.is(exitCode, 17, stderr);
      assert.match(stderr, /STORE_CONFLICT.*alpha-1\.0\.0\.tar\.gz: has changed since the plan was created/);
      assert.match(stderr, 'create the plan again');
    }
    assert.is(await stat(box.at('planned.tar.gz')).catch(() => 'absent'), 'absent');
    assert.is(await open('bundles').head('planned.tar.gz', { signal }), undefined);
  });

  if (name !== 'versitygw') {
    test.run();
    continue;
  }

  test('whoever may not write, or shows wrong keys, is told so', async ({ signal }) => {
    const words = ['installer.yaml', '--from', DIST, '-o', `s3://${BUCKET}/bundles/denied.tar.gz`];
    const wrong = await bundle(words, { AWS_SECRET_ACCESS_KEY: 'not-the-secret' });
    assert.is(wrong.exitCode, 13, wrong.stderr);
    assert.match(wrong.stderr, 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
    assert.not.match(wrong.stderr + wrong.stdout, 'not-the-secret');
    assert.is(await open('bundles').head('denied.tar.gz', { signal }), undefined);
  });

  /** Starts a bundle into the bucket, and comes back when some parts of it have arrived. */
  // The result's type follows from the options.
  const startUntilParts = async (key: string, parts: number, signal: AbortSignal) => {
    const words = ['installer.yaml', '--from', DIST, '-o', `s3://${BUCKET}/bundles/${key}`];
    const before = proxy.log.length;
    const running = startCurlew(['bundle', ...words], { ...options(), main: MAIN, signal });
    const arrived = (): number =>
      proxy.log.slice(before).filter(({ kind, path, answered }) => {
        return kind === 'UploadPart' && path.includes(key) && answered;
      }).length;
    while (arrived() < parts && running.exitCode === null) await pause(1);
    return { running };
  };

  test('killed in the middle it leaves no object but an upload, beside which the same command does it all', async ({
    signal,
  }) => {
    const { running } = await startUntilParts('killed.tar.gz', 3, signal);
    running.kill('SIGKILL');
    assert.is((await running).signal, 'SIGKILL');
    assert.is(await open('bundles').head('killed.tar.gz', { signal }), undefined);
    assert.is(await uploadsBegun(signal), 1);
    const again = await bundle(['installer.yaml', '--from', DIST, '-o', `s3://${BUCKET}/bundles/killed.tar.gz`]);
    assert.is(again.exitCode, 0, again.stderr);
    const expected = await readFile(box.at('file.tar.gz'));
    const { body } = await open('bundles').get('killed.tar.gz', { signal });
    assert.ok((await collect(body)).equals(expected));
    // What a rule of the bucket does some days later.
    await open('bundles').sweepUploads?.(new Date(Date.now() + 86_400_000), { dryRun: false, signal });
    assert.is(await uploadsBegun(signal), 0);
    assert.is((await open('bundles').head('killed.tar.gz', { signal }))?.size, expected.byteLength);
  });

  test('Ctrl-C gives the upload up', async ({ signal }) => {
    for (const kind of ['SIGINT', 'SIGTERM'] as const) {
      const { running } = await startUntilParts('stopped.tar.gz', 2, signal);
      running.kill(kind);
      const { exitCode, stderr } = await running;
      assert.is(exitCode, 130, stderr);
      assert.match(stderr, 'canceled');
      assert.is(await open('bundles').head('stopped.tar.gz', { signal }), undefined);
      assert.is(await uploadsBegun(signal), 0);
    }
  });

  test('from a bucket into a file: memory and requests stay small, however large the packages', async ({ signal }) => {
    const names = ['one', 'two', 'three', 'four', 'five', 'six'];
    const store = open('large');
    const large = names.map((one) => packageOf(one, randomBytes(52 * MIB)));
    await publishTestPackages(box, large, signal, store);
    await rm(box.at('out'), { recursive: true });
    const spec = specOf(Object.fromEntries(names.map((one) => [one, '1.0.0'])));
    await using own = await tree({ 'installer.yaml': spec });
    const peak = `import { readFileSync as read, writeFileSync as write } from 'node:fs';
process.on('exit', () => write(${JSON.stringify(own.at('peak'))}, read('/proc/self/status')));`;
    const from = ['--from', `s3://${BUCKET}/large`, '-o', 'b.tar.gz'];
    const before = proxy.log.length;
    await execa(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(peak)}`, MAIN, 'bundle', 'installer.yaml', ...from],
      { cwd: own.path, env: cleanEnvironment(options()), extendEnv: false },
    );
    const [, kilobytes = 'NaN'] = /^VmHWM:\s+(\d+)/m.exec(await readFile(own.at('peak'), 'utf8')) ?? [];
    const { size } = await stat(own.at('b.tar.gz'));
    const counts = countKinds(proxy.log.slice(before));
    assert.ok(size > 300 * MIB);
    assert.ok(Number(kilobytes) <= 150 * 1024, `${kilobytes} kB`);
    const asked = Object.values(counts).reduce((sum, count) => sum + count, 0);
    assert.ok(asked <= 4 * names.length + size / (2 * MIB), JSON.stringify(counts));
  });

  test.run();
}
