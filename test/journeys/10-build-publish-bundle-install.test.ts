/** The whole way of an add-on through the built command: registry, package, store, bundle, node. */
import { execa } from 'execa';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import * as assert from '../support/assert.ts';
import { cleanEnvironment, curlew, curlewOk, startCurlew } from '../support/curlew.ts';
import { answers } from '../support/faults.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import { startRegistry, type RegistryServer } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';
import type { Fault } from '../support/web-server.ts';

// not fast: starts the command again and again
const test = suite('an add-on on its whole way', { timeoutMs: 120_000 });

const INSTALL = `# shellcheck shell=bash
web_pre_init() { WEB_SEEN="port \${WEB_PORT}"; }
web() {
  render_yaml_file_2 "$DIR/addons/web/1.0.0/web.yaml" > "$DIR/kustomize/web/web.yaml"
  cp "$DIR/addons/web/1.0.0/assets/page" "$DIR/kustomize/web/page"
}
web_already_applied() { test -f "$DIR/kustomize/web/web.yaml"; }
web_post_init() { echo "after all: $WEB_SEEN"; }
web_outro() { logSuccess "all done: $WEB_SEEN"; }
`;

const ADDON: Files = {
  'addons/web/1.0.0/Manifest': 'image web registry.example/web:1.0\nasset page ./page.html\n',
  'addons/web/1.0.0/install.sh': INSTALL,
  'addons/web/1.0.0/page.html': '<p>hello</p>\n',
  'addons/web/1.0.0/web.yaml': 'port: ${WEB_PORT}\n',
  'installer.yaml': `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: journey
spec:
  web:
    version: latest
    port: 8080
`,
};

const PACKAGE = 'out/web-1.0.0.tar.gz';
const image = makeImage([makeLayer({ 'bin/web': binaryLike(300_000, 'web') }), makeLayer({ etc: 'x' })]);

async function registryWith(...faults: readonly Fault[]): Promise<RegistryServer> {
  return startRegistry({ 'web:1.0': image }, { faults });
}

function mirror(registry: RegistryServer): readonly string[] {
  return ['--registry-mirror', `registry.example=${registry.host}`];
}

/** Every file below a folder, as paths; none when there is no folder. */
async function filesBelow(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name));
  } catch {
    return [];
  }
}

/** Processes whose environment holds a text. */
async function processesWith(mark: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.includes(mark)) found.push(pid);
  }
  return found;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(10);
}

/** Builds, publishes and bundles; nothing is needed for the rest of the way but the bundle. */
async function bundled(box: Tree): Promise<string> {
  await using registry = await registryWith();
  await curlewOk(['build', 'web', ...mirror(registry)], { cwd: box.path });
  await curlewOk(['publish', 'web', '--to', 'store', '--release', 'v1', ...mirror(registry)], { cwd: box.path });
  await curlewOk(['bundle', 'installer.yaml', '--from', 'store', '-o', 'bundle.tar.gz'], { cwd: box.path });
  return box.at('bundle.tar.gz');
}

const TRIAL = ['--root', 'node', '--unconfined', '--skip-images'];

test('it is built, published, bundled, verified, installed, and then found already applied', async () => {
  await using box = await tree(ADDON);
  const bundle = await bundled(box);
  await curlewOk(['verify', PACKAGE, bundle], { cwd: box.path });
  const sbom = await curlewOk(['sbom', bundle], { cwd: box.path });
  for (const ref of ['addons/web/1.0.0/', 'pkg:oci/web@sha256:', 'pkg:generic/page?checksum=']) assert.match(sbom, ref);
  await curlewOk(['provenance', PACKAGE, bundle], { cwd: box.path });
  const first = await curlew(['install', '--bundle', bundle, ...TRIAL], { cwd: box.path });
  assert.is(first.exitCode, 0, first.stderr);
  assert.match(first.stdout, /web +1\.0\.0 +installed/);
  assert.match(first.stdout, /\n\nweb:\n  ✔ all done: port 8080$/);
  assert.not.match(first.stderr, 'all done');
  const written = box.at('node/var/lib/curlew/kustomize/web');
  assert.is(await readFile(join(written, 'web.yaml'), 'utf8'), 'port: 8080\n');
  assert.is(await readFile(join(written, 'page'), 'utf8'), '<p>hello</p>\n');
  const second = await curlewOk(['install', '--bundle', bundle, ...TRIAL], { cwd: box.path });
  assert.match(second, /web +1\.0\.0 +already applied/);
});

test('a bundle that tar has unpacked installs itself', async () => {
  await using box = await tree(ADDON);
  await execa('tar', ['-xzf', await bundled(box), '-C', box.path, '--one-top-level=unpacked']);
  const result = await execa('bash', ['unpacked/install.sh', ...TRIAL], {
    cwd: box.path,
    env: cleanEnvironment({ cwd: box.path }),
    extendEnv: false,
    stdin: 'ignore',
  });
  assert.match(result.stdout, /web +1\.0\.0 +installed/);
});

for (const more of [[], ['--json']]) {
  test(`a plan that was printed is what a later build carries out ${more.join(' ')}`.trim(), async () => {
    await using box = await tree(ADDON);
    await using registry = await registryWith();
    await writeFile(box.at('plan.json'), await curlewOk(['build', 'web', '--dry-run', ...more], { cwd: box.path }));
    assert.is(registry.log.length, 0);
    await curlewOk(['build', '--from-plan', 'plan.json', ...mirror(registry)], { cwd: box.path });
    await curlewOk(['verify', PACKAGE], { cwd: box.path });
  });
}

test('with nothing changed a build asks for no blob and leaves the file alone', async () => {
  await using box = await tree(ADDON);
  await using registry = await registryWith();
  await curlewOk(['build', 'web', ...mirror(registry)], { cwd: box.path });
  const [before, blobs] = [await stat(box.at(PACKAGE)), registry.blobRequests().length];
  assert.match(await curlewOk(['build', 'web', ...mirror(registry)], { cwd: box.path }), /unchanged/);
  assert.is((await stat(box.at(PACKAGE))).ino, before.ino);
  assert.is(registry.blobRequests().length, blobs);
});

test('Ctrl-C in the middle of a layer ends with 130, leaves no package and no process', async () => {
  await using box = await tree(ADDON);
  await using registry = await registryWith(answers({ status: 200, sending: 'never' }, { path: /\/blobs\// }));
  const mark = `CURLEW_TEST_MARK=${box.path}`;
  const options = { cwd: box.path, env: { CURLEW_TEST_MARK: box.path } };
  const child = startCurlew(['build', 'web', ...mirror(registry)], options);
  await until(() => registry.blobRequests().length > 0);
  child.kill('SIGINT');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 130, stderr);
  assert.equal(await filesBelow(box.at('out')), []);
  assert.equal(await processesWith(mark), []);
});

test('after Ctrl-C the same command succeeds', async () => {
  await using box = await tree(ADDON);
  {
    await using registry = await registryWith(answers({ status: 200, sending: 'never' }, { path: /\/blobs\// }));
    const child = startCurlew(['build', 'web', ...mirror(registry)], { cwd: box.path });
    await until(() => registry.blobRequests().length > 0);
    child.kill('SIGTERM');
    assert.is((await child).exitCode, 130);
  }
  await using registry = await registryWith();
  await curlewOk(['build', 'web', ...mirror(registry)], { cwd: box.path });
  await curlewOk(['verify', PACKAGE], { cwd: box.path });
});

test('two builds of the same add-on at once: both end well, or one says that the other is at work', async () => {
  await using box = await tree(ADDON);
  await using registry = await registryWith();
  const outcomes = await Promise.all(
    [1, 2].map(async () => curlew(['build', 'web', ...mirror(registry)], { cwd: box.path })),
  );
  assert.ok(
    outcomes.some(({ exitCode }) => exitCode === 0),
    outcomes.map(({ stderr }) => stderr).join('\n'),
  );
  for (const { exitCode, stderr } of outcomes) {
    if (exitCode !== 0) assert.match(stderr, /error BUSY/);
  }
  await curlewOk(['verify', PACKAGE], { cwd: box.path });
  assert.equal(await filesBelow(box.at('out')), [box.at(PACKAGE)]);
});

test('a folder where the package should go is an error that touches nothing', async () => {
  await using box = await tree({ ...ADDON, [`${PACKAGE}/keep`]: 'mine' });
  await using registry = await registryWith();
  const { exitCode, stderr } = await curlew(['build', 'web', ...mirror(registry)], { cwd: box.path });
  assert.ok(exitCode >= 10 && exitCode < 64, `${exitCode}: ${stderr}`);
  assert.match(stderr, /^error [A-Z_]+: /m);
  assert.equal(await filesBelow(box.at('out')), [box.at(PACKAGE, 'keep')]);
});

test('a bundle does not replace a file unless it is told to', async () => {
  await using box = await tree(ADDON);
  const bundle = await bundled(box);
  await writeFile(bundle, 'mine');
  const words = ['bundle', 'installer.yaml', '--from', 'store', '-o', bundle];
  const { exitCode, stderr } = await curlew(words, { cwd: box.path });
  assert.is(exitCode, 24, stderr);
  assert.is(await readFile(bundle, 'utf8'), 'mine');
  await curlewOk([...words, '--force'], { cwd: box.path });
  await curlewOk(['verify', bundle], { cwd: box.path });
});

test('without a network a build says what it could not reach, and leaves nothing', async () => {
  await using box = await tree(ADDON);
  const registry = await registryWith();
  await registry[Symbol.asyncDispose]();
  const { exitCode, stderr } = await curlew(['build', 'web', ...mirror(registry)], { cwd: box.path });
  assert.is(exitCode, 12, stderr);
  assert.match(stderr, /error FETCH_FAILED: .*registry\.example\/web:1\.0/);
  assert.equal(await filesBelow(box.at('out')), []);
});

test('a hook that fails ends the install with its code, its place and its log', async () => {
  await using box = await tree({
    ...ADDON,
    'addons/web/1.0.0/install.sh': INSTALL.replace('web() {\n', 'web() {\n  echo before; false\n'),
  });
  const bundle = await bundled(box);
  const { exitCode, stderr } = await curlew(['install', '--bundle', bundle, ...TRIAL], { cwd: box.path });
  assert.is(exitCode, 20, stderr);
  assert.match(stderr, /error HOOK_FAILED: .*web/);
  assert.match(stderr, /install\.sh:\d+/);
});

test('a folder that cannot be written is named', async () => {
  await using box = await tree({ ...ADDON, out: 'a file' });
  await using registry = await registryWith();
  const { exitCode, stderr } = await curlew(['build', 'web', ...mirror(registry)], { cwd: box.path });
  assert.ok(exitCode >= 10 && exitCode < 64, `${exitCode}: ${stderr}`);
  assert.match(stderr, /out/);
});

test.run();
