/** `curlew serve` over a real store in S3, asked by the clients that people use, through connections that break. */
import { execa } from 'execa';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { digestOf } from '../../src/core/digest.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import * as assert from '../support/assert.ts';
import { specOf } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { BUILT_MAIN as MAIN } from '../support/built.ts';
import { cleanEnvironment, startCurlew } from '../support/curlew.ts';
import { publishImages } from '../support/image-release.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { freePort } from '../support/ports.ts';
import { startDaemon, type Daemon } from './support/daemon.ts';
import { cannotRun, oracle, run } from './support/programs.ts';
import { BUCKET, cannotServe, S3_KEYS, startS3, type S3Server } from './support/s3-servers.ts';
import { startContainerd } from './support/services.ts';

const test = suite('serve to real clients', { timeoutMs: 120_000 });

const IMAGE = makeImage(
  [makeLayer({ 'usr/bin/big': noise(9_000_000) }, 'docker'), makeLayer({ small: 'small\n' }, 'docker')],
  'docker',
);
const REFERENCE = 'docker.io/library/web:1.2';

let box: Tree;
let s3: S3Server;
let server: Daemon;
let host: string;
/** Sha256 of the bundle, as it came in one piece. */
let whole: string;

async function startServing(at: string, more: readonly string[] = []): Promise<Daemon> {
  return startDaemon({
    command: process.execPath,
    args: [MAIN, 'serve', '--store', `s3://${BUCKET}/dist`, '--s3-endpoint', s3.url, '--listen', at, ...more],
    logFile: box.at(`serve-${at}.log`),
    env: S3_KEYS,
    ready: async () => (await fetch(`http://${at}/healthz`)).ok,
  });
}

/** A way to the server on which every connection is cut after so many bytes. */
async function startCutting(
  bytes: number,
): Promise<AsyncDisposable & { readonly host: string; readonly cuts: () => number }> {
  let cuts = 0;
  const [name = '', port = ''] = host.split(':');
  const proxy = createServer((client) => {
    const behind = connect(Number(port), name);
    let left = bytes;
    client.on('error', () => behind.destroy());
    behind.on('error', () => client.destroy());
    client.pipe(behind);
    behind.on('data', (data: Buffer) => {
      client.write(data.subarray(0, left));
      left -= data.byteLength;
      if (left > 0) return;
      cuts += 1;
      client.end(() => client.destroy());
      behind.destroy();
    });
    behind.once('close', () => client.end());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    host: `127.0.0.1:${address.port}`,
    cuts: () => cuts,
    [Symbol.asyncDispose]: async () => {
      proxy.close();
    },
  };
}

async function digestOfFile(path: string): Promise<string> {
  return digestOf(await readFile(path));
}

const reason =
  cannotRun('curl', 'wget', 'aria2c', 'ctr', 'containerd', 'skopeo', oracle('crane')) ?? cannotServe('versitygw');
if (reason !== undefined) {
  test.skip('everything', reason);
} else {
  test.before(async () => {
    box = await tree();
    s3 = await startS3('versitygw', box.path);
    const store = createS3Store(`s3://${BUCKET}/dist`, { endpoint: s3.url, report: noReport });
    const { signal } = new AbortController();
    await publishImages(box, [{ name: 'web', version: '1.0', images: { [REFERENCE]: IMAGE } }], signal, store);
    await store.put('installers/one.yaml', Buffer.from(specOf({ web: 'latest' })), { signal });
    host = `127.0.0.1:${await freePort()}`;
    server = await startServing(host);
    whole = digestOf(Buffer.from(await (await fetch(`http://${host}/bundle/one.tar.gz`)).arrayBuffer()));
  });
  test.after(async () => {
    await server[Symbol.asyncDispose]();
    await s3[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test('curl goes on after every cut until the bundle is whole', async () => {
    await using cutting = await startCutting(20_000_000);
    const path = box.at('curl.tar.gz');
    const args = [
      '--fail',
      '--silent',
      '--continue-at',
      '-',
      '--output',
      path,
      `http://${cutting.host}/bundle/one.tar.gz`,
    ];
    let tries = 0;
    for (; tries < 20; tries += 1) {
      const { exitCode } = await execa('curl', args, { reject: false });
      if (exitCode === 0) break;
    }
    assert.ok(cutting.cuts() >= 2);
    assert.is(await digestOfFile(path), whole);
  });

  test('wget goes on by itself', async () => {
    await using cutting = await startCutting(20_000_000);
    const path = box.at('wget.tar.gz');
    await run('wget', [
      '--quiet',
      '--tries=20',
      '--waitretry=0',
      `--output-document=${path}`,
      `http://${cutting.host}/bundle/one.tar.gz`,
    ]);
    assert.ok(cutting.cuts() >= 2);
    assert.is(await digestOfFile(path), whole);
  });

  test('aria2c puts ranges of several connections together', async () => {
    await using cutting = await startCutting(4_000_000);
    const options = [
      '--split=4',
      '--max-connection-per-server=4',
      '--min-split-size=1M',
      '--max-tries=100',
      '--retry-wait=0',
    ];
    const place = ['--dir', box.path, '--out', 'aria.tar.gz', '--no-conf', '--console-log-level=error'];
    await run('aria2c', [...options, ...place, `http://${cutting.host}/bundle/one.tar.gz`]);
    assert.ok(cutting.cuts() >= 2);
    assert.is(await digestOfFile(box.at('aria.tar.gz')), whole);
  });

  test('another server over the same store goes on where the first one stopped', async () => {
    const other = `127.0.0.1:${await freePort()}`;
    await using _ = await startServing(other);
    const head = await fetch(`http://${host}/bundle/one.tar.gz`, { headers: { range: 'bytes=0-9999999' } });
    const etag = head.headers.get('etag') ?? '';
    const parts = [Buffer.from(await head.arrayBuffer())];
    const rest = await fetch(`http://${other}/bundle/one.tar.gz`, {
      headers: { range: 'bytes=10000000-', 'if-range': etag },
    });
    assert.is(rest.status, 206);
    parts.push(Buffer.from(await rest.arrayBuffer()));
    assert.is(digestOf(Buffer.concat(parts)), whole);
  });

  test('crane and skopeo pull an image, its registry named or not', async () => {
    await run(oracle('crane'), ['validate', '--insecure', '--remote', `${host}/${REFERENCE}`]);
    assert.is(await run(oracle('crane'), ['digest', '--insecure', `${host}/library/web:1.2`]), IMAGE.manifest.digest);
    assert.is(await run(oracle('crane'), ['ls', '--insecure', `${host}/library/web`]), '1.2');
    assert.is(await run(oracle('crane'), ['catalog', '--insecure', host]), 'docker.io/library/web');
    const args = ['--src-tls-verify=false', `docker://${host}/${REFERENCE}`, `dir:${box.at('skopeo')}`];
    await run('skopeo', ['--insecure-policy', 'copy', '--quiet', ...args]);
    assert.is(await digestOfFile(box.at('skopeo/manifest.json')), IMAGE.manifest.digest);
    for (const { digest, data } of IMAGE.layers) {
      assert.ok((await readFile(box.at('skopeo', digest.slice('sha256:'.length)))).equals(data));
    }
  });

  test('ctr pulls an image, by its name here and as from a mirror', async () => {
    await using daemon = await startContainerd(box.at('containerd'));
    const ctr = async (...args: readonly string[]): Promise<string> =>
      run('ctr', ['--address', daemon.socket, ...args]);
    const pull = ['images', 'pull', '--snapshotter', 'native'];
    await ctr(...pull, '--plain-http', `${host}/${REFERENCE}`);
    const folder = box.at('hosts/docker.io');
    await mkdir(folder, { recursive: true });
    const toml = `server = "http://${host}"\n[host."http://${host}"]\n  capabilities = ["pull", "resolve"]\n`;
    await writeFile(join(folder, 'hosts.toml'), toml);
    await ctr(...pull, '--hosts-dir', box.at('hosts'), REFERENCE);
    const list = await ctr('images', 'list');
    for (const name of [`${host}/${REFERENCE}`, REFERENCE]) assert.match(list, `${name} `);
    assert.is(list.split(IMAGE.manifest.digest).length, 3);
  });

  test('curl | bash installs from it', async () => {
    const line = `curl --fail --silent http://${host}/one | setsid bash -s -- --root "$1" --preflights ignore`;
    const env = cleanEnvironment({ cwd: box.path, env: { CURLEW_CACHE: box.at('cache') } });
    const done = await execa('bash', ['-c', line, 'bash', box.at('node')], { env, extendEnv: false, reject: false });
    assert.is(done.exitCode, 0, done.stderr);
    const records = await readFile(box.at('node/var/lib/curlew/records.json'), 'utf8');
    assert.match(records, /"web"/);
  });

  test('SIGTERM lets a running download end, and the process ends with 0 after it', async () => {
    const own = `127.0.0.1:${await freePort()}`;
    const words = ['serve', '--store', `s3://${BUCKET}/dist`, '--s3-endpoint', s3.url, '--listen', own];
    const child = startCurlew(words, { cwd: box.path, env: S3_KEYS, main: MAIN });
    const up = async (): Promise<boolean> =>
      fetch(`http://${own}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await up())) await new Promise((resolve) => setTimeout(resolve, 20));
    const answer = await fetch(`http://${own}/bundle/one.tar.gz`);
    child.kill('SIGTERM');
    assert.is(digestOf(Buffer.from(await answer.arrayBuffer())), whole);
    const { exitCode, stdout } = await child;
    assert.is(exitCode, 0);
    const lines = stdout.split('\n').filter((text) => text.startsWith('{'));
    const last = JSON.parse(lines.at(-1) ?? '{}') as { readonly path?: string; readonly status?: number };
    assert.equal([last.path, last.status], ['/bundle/one.tar.gz', 200]);
  });
}

test.run();
