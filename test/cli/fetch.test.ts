import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, type TestPackage } from '../support/bundles.ts';
import { startCurlew } from '../support/curlew.ts';
import { sendsOtherBytes } from '../support/faults.ts';
import { bundleOf, specOf } from '../support/node-bundles.ts';
import { traced, tracer, tracerPackage } from '../support/node-install.ts';
import { noise, writePackage } from '../support/packages.ts';
import { notedBytes } from '../support/pulls.ts';
import { startProxy } from '../support/proxy-server.ts';
import { publishAs } from '../support/releases.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';
import { bytesOf, serveFolder, type Fault } from '../support/web-server.ts';

// not fast: starts the command again and again
const test = suite('cli: what is fetched for a run', { timeoutMs: 120_000 });
const BLOB = noise(3_000_000);

function packageWithBlob(name: string): TestPackage {
  return tracerPackage(name, '1.0.0', { 'assets/blob': BLOB });
}

// The result's type follows from the options.
function start(box: Tree, more: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const words = ['install', '--root', box.at('root'), '--unconfined', '--installer', 'spec.yaml', ...more];
  return startCurlew(words, traced(box, env));
}

async function storeBox(signal: AbortSignal, names: readonly string[] = ['aaa', 'bbb']): Promise<Tree> {
  const box = await tree({ 'spec.yaml': specOf(names.map((name) => ({ name, version: 'latest' }))) });
  const packages = names.map((name) => packageWithBlob(name));
  await publishTestPackages(box, packages, signal);
  return box;
}

/** Lets everything pass, and counts the bytes of package bodies. */
function counting(): { readonly fault: Fault; readonly sent: () => number; readonly reset: () => void } {
  let bytes = 0;
  return {
    sent: () => bytes,
    reset: () => (bytes = 0),
    fault: ({ method, path }, { body }) => {
      if (method === 'GET' && path.endsWith('.tar.gz')) bytes += Buffer.from(body ?? '').byteLength;
      return undefined;
    },
  };
}

const NODE = 'root/var/lib/curlew';

test('packages come from the web server in front of a store, are removed once extracted, and not fetched again', async ({
  signal,
}) => {
  await using box = await storeBox(signal);
  await using server = await serveFolder(box.at('store'));
  const first = await start(box, ['--from', server.url]);
  assert.is(first.exitCode, 0, first.stderr);
  assert.match(first.stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.match(first.stderr, 'fetch aaa-1.0.0');
  assert.ok((await readFile(box.at(NODE, 'addons/bbb/1.0.0/assets/blob'))).equals(BLOB));
  assert.is(await stat(box.at(NODE, 'fetched')).catch(() => 'absent'), 'absent');
  const asked = server.log.filter(({ path }) => path.includes('.tar.gz')).length;
  const second = await start(box, ['--from', server.url]);
  assert.match(second.stdout, /^aaa {2}1\.0\.0 {2}already applied/, second.stderr);
  const packages = (): readonly string[] =>
    server.log.filter(({ path }) => path.includes('.tar.gz')).map(({ method, path }) => `${method} ${path}`);
  assert.equal(packages().slice(asked), [], 'nobody is asked for packages that are there');
  // What was changed by hand is asked for again, and so is what the records do not vouch for.
  await writeFile(box.at(NODE, 'addons/aaa/1.0.0/addon.json'), '{}');
  await start(box, ['--from', server.url]);
  assert.ok(
    packages().length > asked &&
      packages()
        .slice(asked)
        .every((one) => one.includes('aaa')),
  );
  assert.ok((await readFile(box.at(NODE, 'addons/aaa/1.0.0/addon.json'), 'utf8')).includes('"aaa"'));
  const before = packages().length;
  await rm(box.at(NODE, 'records.json'));
  assert.match((await start(box, ['--from', server.url])).stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.ok(
    packages()
      .slice(before)
      .some((one) => one.includes('bbb')),
  );
});

test('killed in the middle of a package: the same command asks for the rest of it alone', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
  await publishTestPackages(box, [tracerPackage('aaa', '1.0.0', { 'assets/blob': noise(12_000_000) })], signal);
  const count = counting();
  let halts = true;
  const halt: Fault = ({ method, headers }, regular) => {
    const large = bytesOf(regular.body).byteLength > 1_000_000;
    if (!halts || method !== 'GET' || !large || headers['range'] === undefined) return undefined;
    return { ...regular, sending: { haltAt: 5_000_000 } };
  };
  await using server = await serveFolder(box.at('store'), { faults: [halt, count.fault] });
  const child = start(box, ['--from', server.url]);
  const noted = async (): Promise<number> => {
    const [name = ''] = (await readdir(box.at(NODE, 'fetched')).catch(() => [])).filter((one) => one.endsWith('.json'));
    return notedBytes(box.at(NODE, 'fetched', name));
  };
  while (child.exitCode === null && (await noted()) < 3_000_000) await wait(10);
  child.kill('SIGKILL');
  await child;
  const there = await noted();
  halts = false;
  count.reset();
  const { exitCode, stdout, stderr } = await start(box, ['--from', server.url]);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, 'installed');
  const { size } = await stat(box.at('store/r1/aaa-1.0.0.tar.gz'));
  assert.ok(there >= 3_000_000, String(there));
  // The table of contents is read for the plan, and for the transfer.
  assert.ok(
    count.sent() < size - there + 2 * 75_000,
    `${count.sent()} of ${size} bytes came again, ${there} were there`,
  );
  assert.is(await stat(box.at(NODE, 'fetched')).catch(() => 'absent'), 'absent');
});

test('a mirror steps in for a store that gives wrong bytes', async ({ signal }) => {
  await using box = await storeBox(signal, ['aaa']);
  const large: Fault = (asked, regular) => {
    const wrong = sendsOtherBytes({ path: /\.tar\.gz$/ });
    return bytesOf(regular.body).byteLength > 1_000_000 ? wrong(asked, regular) : undefined;
  };
  await using bad = await serveFolder(box.at('store'), { faults: [large] });
  const { exitCode, stderr } = await start(box, ['--from', bad.url, '--from', 'store']);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, /assets\/blob: arrives damaged; trying the next place/);
  const alone = await start(box, ['--from', bad.url, '--install-dir', '/opt/other']);
  assert.is(alone.exitCode, 15, alone.stderr);
  assert.match(alone.stderr, 'specify a mirror with another --from');
  assert.is(await stat(box.at('root/opt/other/addons/aaa')).catch(() => 'absent'), 'absent');
});

test('--release picks a release that is not the current one', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
  const store = await publishTestPackages(box, [packageWithBlob('aaa')], signal);
  const { files } = packageWithBlob('aaa');
  const path = box.at('out/newer.tar.gz');
  await publishAs(store, 'r2', [{ path, addon: await writePackage(path, 'aaa', '2.0.0', files) }], signal);
  await using server = await serveFolder(box.at('store'));
  assert.match((await start(box, ['--from', server.url, '--release', 'r1'])).stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.match((await start(box, ['--from', server.url])).stdout, /^aaa {2}1\.0\.0 → 2\.0\.0 {2}installed/);
  const none = await start(box, ['--from', server.url, '--release', 'r3']);
  assert.is(none.exitCode, 14);
  assert.match(none.stderr, 'release "r3" does not exist');
  assert.is((await start(box, ['--bundle', 'x', '--release', 'r1'])).exitCode, 64);
});

test('proxies and authorities of the operator are honoured, plain http to elsewhere is refused', async ({ signal }) => {
  await using box = await storeBox(signal, ['aaa']);
  const { ca, ...tls } = await makeCertificate(['packages.test']);
  await writeFile(box.at('ca.pem'), ca);
  await using server = await serveFolder(box.at('store'), { tls, name: 'packages.test' });
  await using proxy = await startProxy({ hosts: { [server.host]: server.port } });
  const env = { HTTPS_PROXY: proxy.url };
  const refused = await start(box, ['--from', server.url], env);
  assert.is(refused.exitCode, 12, refused.stderr);
  const { exitCode, stderr } = await start(box, ['--from', server.url, '--ca-file', 'ca.pem'], env);
  assert.is(exitCode, 0, stderr);
  assert.ok(proxy.log.includes(`CONNECT ${server.host}`));
  const plain = await start(box, ['--from', 'http://packages.test:8080/dist'], {});
  assert.is(plain.exitCode, 12);
  assert.match(plain.stderr, '--allow-http packages.test:8080');
});

const overridden = (version: string, address: string): string =>
  `${specOf([{ name: 'aaa', version }])}    s3Override: "${address}"\n`;

test('an s3Override takes the place of the published package, and proves itself', async ({ signal }) => {
  await using box = await storeBox(signal, ['aaa']);
  const files = packageWithBlob('aaa').files.filter(({ path }) => path !== 'data/x.yaml');
  await writePackage(box.at('store/pr-aaa.tar.gz'), 'aaa', '1.0.1', files);
  await using server = await serveFolder(box.at('store'));
  const address = `${server.url}/pr-aaa.tar.gz?sig=topsecret`;
  await writeFile(box.at('spec.yaml'), overridden('1.0.x', address));
  const { exitCode, stdout, stderr } = await start(box, ['--from', server.url]);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^aaa {2}1\.0\.1 {2}installed/);
  assert.not.match(`${stdout}${stderr}`, 'topsecret');
  assert.not.match(await readFile(box.at(NODE, 'records.json'), 'utf8'), 'topsecret');
  await writeFile(box.at('spec.yaml'), overridden('1.0.0', address));
  const other = await start(box, ['--from', server.url]);
  assert.is(other.exitCode, 11);
  assert.match(other.stderr, /aaa: the s3Override .*pr-aaa\.tar\.gz has version 1\.0\.1, the spec requires 1\.0\.0/);
  const bytes = await readFile(box.at('store/pr-aaa.tar.gz'));
  bytes[1_000_000] = (bytes[1_000_000] ?? 0) ^ 1;
  await writeFile(box.at('store/pr-aaa.tar.gz'), bytes);
  await writeFile(box.at('spec.yaml'), overridden('1.0.1', address));
  const damaged = await start(box, ['--from', server.url, '--install-dir', '/opt/other']);
  assert.is(damaged.exitCode, 15, damaged.stderr);
  assert.match(damaged.stderr, 'assets/blob');
});

test('without a network an s3Override is only what the bundle holds', async () => {
  await using box = await tree({ 'b.tar.gz': bundleOf([tracer('aaa')]) });
  await writeFile(box.at('spec.yaml'), overridden('1.0.0', 'https://packages.invalid/aaa.tar.gz'));
  const held = await start(box, ['--bundle', 'b.tar.gz']);
  assert.is(held.exitCode, 0, held.stderr);
  assert.match(held.stderr, /aaa: the package of .*b\.tar\.gz is installed; its s3Override is not fetched/);
  const spec = overridden('1.0.0', 'https://packages.invalid/bbb.tar.gz').replace('aaa:', 'bbb:');
  await writeFile(box.at('spec.yaml'), spec);
  const lacking = await start(box, ['--bundle', 'b.tar.gz']);
  assert.is(lacking.exitCode, 14);
  assert.match(lacking.stderr, /has no package of bbb, and its s3Override is not fetched in an airgap install/);
});

test.run();
