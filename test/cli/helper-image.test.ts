/** The image that KURL_UTIL_IMAGE names: how its package comes to nodes, and when hooks are told. */
import { command } from '../../src/cli/commands/bundle.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { digestOf } from '../../src/core/digest.ts';
import type { AddonJson } from '../../src/core/package.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { trace } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';

const test = suite('cli: the helper image', { timeoutMs: 120_000 });

function images(reference: string): Pick<AddonJson, 'images'> {
  return { images: [{ id: 'one', reference, digest: digestOf(reference), platform: 'linux/amd64' }] };
}

function helper(version: string): TestPackage {
  const extra = { tree: 'packages' as const, ...images(`localhost/curlew-utils:${version}`) };
  return { name: 'curlew-utils', version, files: [{ path: 'Manifest', data: '' }], extra };
}

function app(extra: Partial<AddonJson> = images('registry.test/app:1'), version = '1.0.0'): TestPackage {
  const script = 'app() { echo "image $KURL_UTIL_IMAGE" >>"$TRACE"; }\n';
  return { name: 'app', version, files: [{ path: 'install.sh', data: script }], extra };
}

async function boxOf(packages: readonly TestPackage[], signal: AbortSignal): Promise<Tree> {
  const box = await tree({ 'spec.yaml': specOf({ app: 'latest' }), 'pinned.yaml': specOf({ app: '1.0.0' }) });
  await publishTestPackages(box, packages, signal);
  return box;
}

async function install(box: Tree, ...words: readonly string[]): Promise<string> {
  const root = words.includes('--root') ? [] : ['--root', box.at('root')];
  const all = ['install', '--unconfined', '--reapply', ...root, ...words];
  const { exitCode, stderr, stdout } = await runTraced(all, box);
  assert.is(exitCode, 0, stderr);
  return stdout;
}

async function bundled(box: Tree, signal: AbortSignal, ...words: readonly string[]) {
  const env = { XDG_CACHE_HOME: box.at('cache'), HOME: box.path };
  const args = readArguments(command, ['spec.yaml', '--from', 'store', '-o', 'b.tar.gz', ...words]);
  return command.run(args, { cwd: box.path, env, report: noReport, signal });
}

test('its newest version is in a bundle that has images, and hooks are told its name', async ({ signal }) => {
  await using box = await boxOf([app(), helper('1.0.0'), helper('1.1.0')], signal);
  const { beside } = await bundled(box, signal);
  assert.equal(
    beside.map(({ name, version, role, because }) => [name, version, role, because]),
    [['curlew-utils', '1.1.0', 'machine', 'helper programs that add-ons run in pods']],
  );
  await install(box, '--bundle', 'b.tar.gz');
  assert.equal(await trace(box), ['image localhost/curlew-utils:1.1.0']);
});

test('online it is fetched from the store like the packages of the spec', async ({ signal }) => {
  await using box = await boxOf([app(), helper('1.0.0')], signal);
  await using server = await serveFolder(box.at('store'));
  for (const from of ['store', server.url]) {
    await install(box, '--installer', 'spec.yaml', '--from', from);
    assert.equal(await trace(box), ['image localhost/curlew-utils:1.0.0']);
  }
  await install(box, '--installer', 'spec.yaml', '--from', server.url, '--root', box.at('other'));
  assert.equal(await trace(box), ['image localhost/curlew-utils:1.0.0']);
  assert.ok(server.log.some(({ method, path }) => method === 'GET' && path.endsWith('/curlew-utils-1.0.0.tar.gz')));
});

test('a rollback has the one that an earlier run has brought', async ({ signal }) => {
  await using box = await boxOf([app(), app(undefined, '2.0.0'), helper('1.0.0')], signal);
  await install(box, '--installer', 'pinned.yaml', '--from', 'store');
  await install(box, '--installer', 'spec.yaml', '--from', 'store');
  const { exitCode, stderr } = await runTraced(['rollback', 'app', '--root', box.at('root'), '--unconfined'], box);
  assert.is(exitCode, 0, stderr);
  assert.equal(
    await trace(box),
    Array.from({ length: 3 }, () => 'image localhost/curlew-utils:1.0.0'),
  );
});

test('without the package, or where no package has an image, hooks are told nothing', async ({ signal }) => {
  for (const packages of [[app()], [app({}), helper('1.0.0')]]) {
    await using box = await boxOf(packages, signal);
    assert.equal((await bundled(box, signal)).beside, []);
    await install(box, '--bundle', 'b.tar.gz');
    await install(box, '--installer', 'spec.yaml', '--from', 'store');
    assert.equal(await trace(box), ['image ', 'image ']);
  }
});

test.run();
