import { openNetwork } from '../../src/steps/open/network.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { noReport } from '../support/context.ts';
import { curlew } from '../support/curlew.ts';
import { answers } from '../support/faults.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startProxy } from '../support/proxy-server.ts';
import { ref } from '../support/pull.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import type { NetworkRequest } from '../../src/requests/connection.ts';

const test = suite('cli/network');
const IMAGES = { 'app:1': makeImage([makeLayer({ a: 'a' })]) };

/** The digest of an image, looked up as a use case does with this request and these variables. */
async function look(
  reference: string,
  request: NetworkRequest,
  { cwd = '/', env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<string> {
  await using network = await openNetwork(request, { cwd, env, signal, report: noReport });
  return await network.registry.currentDigest(ref(reference), { signal });
}

test('mirrors of flags are asked first, then those of the configuration', async ({ signal }) => {
  const none = [answers({ status: 404 }, { path: /manifests/ })];
  await using flagged = await startRegistry(IMAGES, { faults: none });
  await using configured = await startRegistry(IMAGES);
  const config = JSON.stringify({ registryMirrors: { 'registry.invalid': [configured.host] } });
  await using box = await tree({ 'c.json': config });
  const given = { config: 'c.json', registryMirror: [`registry.invalid=${flagged.host}`] };
  const digest = await look('registry.invalid/app:1', given, { cwd: box.path }, signal);
  assert.is(digest, IMAGES['app:1'].manifest.digest);
  assert.ok(flagged.log.some(({ path }) => path.includes('/manifests/')));
});

test('an authority comes from the flag, else from the configuration beside it', async ({ signal }) => {
  const certificate = await makeCertificate();
  await using registry = await startRegistry(IMAGES, { tls: certificate, name: 'localhost' });
  await using box = await tree({
    'site/c.json': '{"caFile": "ca.pem"}',
    'site/ca.pem': certificate.ca,
    'bad.json': '{"caFile": "none.pem"}',
  });
  const reference = `${registry.host}/app:1`;
  const here = { cwd: box.path };
  await look(reference, { config: 'site/c.json' }, here, signal);
  await look(reference, { config: 'bad.json', caFile: 'site/ca.pem' }, here, signal);
  await assert.rejectsWith(look(reference, { config: 'bad.json' }, here, signal), 'FILE_UNUSABLE', /none\.pem/);
  const error = await assert.rejectsWith(look(reference, {}, here, signal), 'FETCH_FAILED');
  assert.match(error.hint ?? '', /--ca-file/);
});

test('hosts for plain http and proxies count from configuration and variables', async ({ signal }) => {
  await using registry = await startRegistry(IMAGES);
  await using proxy = await startProxy({ hosts: { 'plain.test:5000': registry.port } });
  await using box = await tree({ 'c.json': '{"allowHttp": ["plain.test:5000"]}' });
  const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url };
  await look('plain.test:5000/app:1', { config: 'c.json' }, { cwd: box.path, env }, signal);
  assert.ok(proxy.log.some((line) => line.includes('http://plain.test:5000/')));
  await look('plain.test:5000/app:1', { allowHttp: ['plain.test:5000'] }, { env }, signal);
});

/** Runs `curlew build` for one image; what it says on both streams. */
async function build(
  image: string,
  more: readonly string[],
  env: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<{ readonly exitCode: number; readonly said: string }> {
  await using box = await tree({ ...addon('a', `image one ${image}\n`), ...files });
  const { exitCode, stdout, stderr } = await curlew(['build', ...more], { cwd: box.path, env });
  return { exitCode, said: `${stdout}\n${stderr}` };
}

for (const [title, status, address] of [
  ['that refuses them', 13, (port: number) => `http://me:hush-hush@127.0.0.1:${port}`],
  ['of another kind', 64, (port: number) => `socks5://me:hush-hush@127.0.0.1:${port}`],
  ['that does not parse', 64, () => 'http://me:hush-hush@[::'],
] as const) {
  test(`credentials for a proxy ${title} are in no output`, async () => {
    await using proxy = await startProxy({ authorization: 'Basic other' });
    for (const more of [[], ['--json']]) {
      const env = { HTTPS_PROXY: address(proxy.port) };
      const found = await build('registry.test/app:1', more, env);
      assert.is(found.exitCode, status, found.said);
      assert.match(found.said, /proxy/i);
      assert.not.match(found.said, /hush|aHVzaC1odXNo/);
    }
  });
}

test('credentials in the address of a mirror are in no output', async () => {
  await using mirror = await startRegistry({}, { auth: { kind: 'basic', username: 'x', password: 'y' } });
  const address = `http://me:hush-hush@${mirror.host}`;
  const found = await build('registry.invalid/app:1', ['--registry-mirror', `registry.invalid=${address}`], {});
  assert.is(found.exitCode, 13, found.said);
  assert.not.match(found.said, /hush/);
});

test('an empty DOCKER_CONFIG is none, not the current folder', async () => {
  await using registry = await startRegistry(IMAGES);
  const found = await build(`${registry.host}/app:1`, [], { DOCKER_CONFIG: '' }, { 'config.json': 'no JSON' });
  assert.is(found.exitCode, 0, found.said);
});

test.run();
