/** The functions of scripts/lib that load and name images, with real container runtimes: containerd 1.6 and 2, Docker. */
import { execa } from 'execa';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import * as assert from '../support/assert.ts';
import { writeArchives, writeLayout } from '../support/image-packages.ts';
import { makeImage, makeLayer, type Image } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { client, envOf, runtimeKinds, type Env, type RuntimeKind } from './support/image-runtimes.ts';
import { ROOT } from './support/programs.ts';
import type { SocketDaemon } from './support/services.ts';

const test = suite('images by scripts/lib', { timeoutMs: 180_000 });

function image(seed: string): Image {
  return makeImage([makeLayer({ [`bin/${seed}`]: seed })], 'docker', seed);
}

for (const kind of runtimeKinds()) {
  if (kind.why === undefined) testLibrary(kind);
  else test.skip(kind.title, kind.why);
}

function testLibrary(kind: RuntimeKind): void {
  const { title } = kind;
  let box: Tree;
  let daemon: SocketDaemon;
  let env: Env;

  /** Runs a line of a hook; the last line that it prints is its status. */
  const hook = async (line: string): Promise<string> => {
    const docker = kind.name === 'docker' ? '20.10.24' : '';
    const load = `for file in "${join(ROOT, 'scripts/lib')}"/*.sh; do source "$file"; done; DOCKER_VERSION=${docker} DIR=.; set -eE`;
    const script = `${load}\n(${line}\n) 2>&1 && echo "status 0" || echo "status $?"`;
    const options = { reject: false, stdin: 'ignore', cwd: box.path, extendEnv: false, env } as const;
    return (await execa('bash', ['-c', script], options)).stdout;
  };
  const names = async (): Promise<readonly string[]> => {
    const words =
      kind.name === 'docker' ? ['images', '--format', '{{.Repository}}:{{.Tag}}'] : ['images', 'list', '-q'];
    return (await client(kind, env, ...words)).split('\n').toSorted();
  };

  test(`${title}: load_images loads archives, compressed and not, and gives them the names of both registries`, async () => {
    box = await tree();
    daemon = await kind.start(box.at('runtime'));
    env = { ...envOf(kind, daemon), HOME: box.path };
    await writeArchives(box.at('archives'), {
      'k8s.gcr.io/lib/pause:1': image('pause'),
      'registry.k8s.io/coredns/coredns:v1': image('dns'),
    });
    const plain = await writeArchives(box.at('plain'), { 'registry.test/lib/plain:1': image('plain') });
    await mkdir(box.at('archives/images/with blank'));
    const packed = await readFile(join(plain.folder, 'images/image0.tar.gz'));
    await writeFile(box.at('archives/images/with blank/plain.tar'), gunzipSync(packed));
    assert.match(await hook('load_images archives/images'), /status 0$/);
    const found = await names();
    for (const name of [
      'k8s.gcr.io/lib/pause:1',
      'registry.k8s.io/lib/pause:1',
      'registry.test/lib/plain:1',
      'registry.k8s.io/coredns/coredns:v1',
      'k8s.gcr.io/coredns/coredns:v1',
      'registry.k8s.io/coredns:v1',
    ]) {
      assert.ok(found.includes(name), `${name} in ${found.join(' ')}`);
    }
    assert.match(await hook('load_images archives/images'), /status 0$/);
    const again = await names();
    assert.ok(
      found.every((name) => again.includes(name)),
      'a second time takes nothing away',
    );
  });

  test(`${title}: load_images tries all, and says by status 123 that one failed`, async () => {
    await writeArchives(box.at('broken'), { 'registry.test/lib/whole:1': image('whole') });
    await writeFile(box.at('broken/images/a.tar'), 'no archive of images');
    assert.match(await hook('load_images broken/images'), /status 123$/);
    assert.ok((await names()).includes('registry.test/lib/whole:1'));
    assert.match(await hook('load_images nowhere'), /status 0$/);
  });

  test(`${title}: kubernetes_load_images loads a version once, get_shared the helper image`, async () => {
    await writeArchives(box.at('packages/kubernetes/1.30.0'), { 'registry.k8s.io/lib/api:1': image('api') });
    const util = await writeArchives(box.at('util'), { 'docker.io/replicated/kurl-util:1': image('util') });
    await mkdir(box.at('shared'));
    await writeFile(
      box.at('shared/kurl-util.tar'),
      gunzipSync(await readFile(join(util.folder, 'images/image0.tar.gz'))),
    );
    const said = await hook('kubernetes_load_images 1.30.0; rm -r packages; kubernetes_load_images 1.30.0; get_shared');
    assert.match(said, /status 0$/);
    const found = await names();
    const helper = kind.name === 'docker' ? 'replicated/kurl-util:1' : 'docker.io/replicated/kurl-util:1';
    for (const name of ['registry.k8s.io/lib/api:1', helper])
      assert.ok(found.includes(name), `${name} in ${found.join(' ')}`);
  });

  test(`${title}: load_images takes an image layout as packages have it`, async () => {
    const made = await writeLayout(box.at('layout'), {
      'registry.test/lib/layout:1': image('layout'),
      'registry.test/lib/two:2': image('two'),
    });
    await cp(join(made.folder, 'images'), box.at('addons/demo/1.0/images'), { recursive: true });
    const said = await hook('addon_load demo 1.0');
    if (kind.name === 'docker') {
      // Docker loads layouts since version 25.
      assert.match(said, /status (?:0|123)$/);
      return;
    }
    assert.match(said, /status 0$/);
    const found = await names();
    for (const name of ['registry.test/lib/layout:1', 'registry.test/lib/two:2']) assert.ok(found.includes(name), name);
  });

  test(`${title}: it ends`, async () => {
    await daemon[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });
}

test('without a runtime load_images fails, and naming images is no failure', async () => {
  await using none = await tree();
  await writeArchives(none.at('a'), { 'registry.test/lib/a:1': image('a') });
  const load = `for file in "${join(ROOT, 'scripts/lib')}"/*.sh; do source "$file"; done`;
  const env = { PATH: process.env['PATH'], CONTAINERD_ADDRESS: none.at('none.sock') };
  const ctr = 'ctr() { return 1; }';
  const words = `${load}; ${ctr}; retag_gcr_images && echo named; load_images a/images || echo "status $?"`;
  const { stdout } = await execa('bash', ['-c', words], { cwd: none.path, extendEnv: false, env, reject: false });
  assert.is(stdout, 'named\nstatus 123');
});

test.run();
