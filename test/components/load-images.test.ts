/** `curlew load-images` into a real containerd: from a bundle, a folder, an install folder, and kURL's own packages. */
import { execa } from 'execa';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProgressEvent } from '../../src/core/events.ts';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { bundleOfPackages } from '../support/deltas.ts';
import { NODE_PLATFORM, writeArchives, writeLayout } from '../support/image-packages.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import { packagesOf, run } from '../support/node-install.ts';
import { packageOf, type TestFile } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { client, containerds, envOf, type Env, type RuntimeKind } from './support/image-runtimes.ts';

const test = suite('load-images', { timeoutMs: 120_000 });

const APP = makeImage([makeLayer({ app: binaryLike(400_000, 'app') })]);
const NAME = 'registry.test/load/app:1';

/** A package with one image, as a file, and in a bundle for kURL's own scripts. */
async function writeBundles(box: Tree): Promise<{ readonly bundle: string; readonly forKurl: string }> {
  const { folder, images } = await writeLayout(box.at('source'), { [NAME]: APP });
  const paths = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const files = await Promise.all(
    paths.map(async (entry): Promise<TestFile> => {
      const path = join(entry.parentPath, entry.name);
      return { path: path.slice(folder.length + 1), data: await readFile(path) };
    }),
  );
  const demo = {
    name: 'demo',
    version: '1.0.0',
    files: [{ path: 'install.sh', data: 'demo() { :; }\n' }, ...files],
    extra: { images: [...images] },
  };
  const [bundle, forKurl] = [box.at('demo.tar.gz'), box.at('kurl.tar.gz')];
  await writeFile(bundle, packageOf(demo.name, demo.version, demo.files, demo.extra).bytes);
  await writeFile(forKurl, (await bundleOfPackages([demo], { kurl: true })).bytes);
  return { bundle, forKurl };
}

interface Answer {
  readonly runtime: string;
  readonly loaded: boolean;
  readonly packages: readonly {
    readonly package: string;
    readonly images: number;
    readonly missing: readonly string[];
    readonly bytes: number;
  }[];
}

for (const kind of containerds()) {
  if (kind.why === undefined) testCommand(kind);
  else test.skip(kind.title, kind.why);
}

function testCommand(kind: RuntimeKind): void {
  const answer = async (box: Tree, env: Env, ...words: readonly string[]): Promise<Answer> =>
    JSON.parse(await curlewOk(['load-images', '--json', ...words], { cwd: box.path, env })) as Answer;
  const forget = async (env: Env): Promise<void> => {
    await client(kind, env, 'images', 'rm', '--sync', NAME);
  };

  test(`${kind.title}: a bundle, an unpacked one and an install folder hold the same images`, async () => {
    await using box = await tree();
    await using daemon = await kind.start(box.at('runtime'));
    const env = envOf(kind, daemon);
    const { bundle, forKurl } = await writeBundles(box);
    const bytes = [APP.manifest, APP.config, ...APP.layers].reduce((sum, { data }) => sum + data.byteLength, 0);
    const whole = [{ package: 'demo-1.0.0', images: 1, missing: [NAME], bytes }];
    const nothing = [{ package: 'demo-1.0.0', images: 1, missing: [], bytes: 0 }];
    const trial = await answer(box, env, '--bundle', bundle, '--dry-run');
    assert.equal(trial, { runtime: 'containerd', loaded: false, packages: whole });
    assert.equal((await answer(box, env, '--bundle', forKurl, '--dry-run')).packages, whole);
    assert.is((await client(kind, env, 'images', 'ls', '-q')).trim(), '', 'a dry run loads nothing');
    assert.equal(await answer(box, env, '--bundle', bundle), { runtime: 'containerd', loaded: true, packages: whole });
    assert.equal((await answer(box, env, '--bundle', bundle)).packages, nothing);

    await forget(env);
    await mkdir(box.at('unpacked'));
    await execa('tar', ['xzf', bundle, '-C', box.at('unpacked')]);
    assert.equal((await answer(box, env, '--dir', 'unpacked')).packages, whole);
    assert.match(await readFile(box.at('unpacked/addons/demo/1.0.0/install.sh'), 'utf8'), 'demo', 'nothing is moved');

    await forget(env);
    await cp(box.at('unpacked/addons'), box.at('node/addons'), { recursive: true });
    assert.equal((await answer(box, env, '--install-dir', box.at('node'))).packages, whole);
    const text = await curlewOk(['load-images', '--install-dir', box.at('node')], { cwd: box.path, env });
    assert.match(text, /demo-1\.0\.0 {2}1 image, all present\n0 images loaded into containerd, 0 B/);

    await forget(env);
    await rm(box.at('unpacked/addons/demo/1.0.0/images'), { recursive: true });
    const moved = await answer(box, env, '--dir', 'unpacked', '--install-dir', box.at('node'));
    assert.equal(moved.packages, whole, 'a run may have moved the files');
  });

  test(`${kind.title}: a run loads the images of its packages; a hostile list of them stops it before anything is changed`, async () => {
    await using box = await tree();
    await using daemon = await kind.start(box.at('runtime'));
    const given = { skipImages: undefined, env: envOf(kind, daemon) };
    const packages = await packagesOf(await readFile((await writeBundles(box)).bundle));
    assert.equal((await run(box, packages, given)).images, { loaded: [NAME], skipped: undefined });
    assert.equal((await run(box, packages, given)).images, { loaded: [], skipped: undefined });
    await forget(given.env);
    const events: ProgressEvent[] = [];
    assert.equal(
      (await run(box, packages, { ...given, events })).images.loaded,
      [NAME],
      'an image that went away comes back',
    );
    assert.ok(events.some((event) => event.type === 'step-done' && event.outcome === '1 loaded into containerd'));
    const image = { id: 'x', reference: '--all', digest: APP.manifest.digest, platform: NODE_PLATFORM };
    const { bytes } = packageOf(
      'evil',
      '1.0.0',
      [{ path: 'install.sh', data: `evil() { touch ${box.at('mark')}; }` }],
      {
        images: [image],
      },
    );
    await assert.rejectsWith(run(box, await packagesOf(bytes), given), 'IMAGE_INVALID', /evil-1\.0\.0: image "--all"/);
    assert.equal(await readdir(box.at('node/addons')), ['demo']);
  });

  test(`${kind.title}: a damaged blob of an unpacked bundle is told, and nothing of it is kept`, async () => {
    await using box = await tree();
    await using daemon = await kind.start(box.at('runtime'));
    const env = envOf(kind, daemon);
    await mkdir(box.at('unpacked'));
    await execa('tar', ['xzf', (await writeBundles(box)).bundle, '-C', box.at('unpacked')]);
    const [layer] = APP.layers;
    const path = box.at('unpacked/addons/demo/1.0.0/images/blobs/sha256', layer?.digest.slice(7) ?? '');
    await writeFile(path, Buffer.from(layer?.data ?? []).fill(1, 5000, 6000));
    const { exitCode, stderr } = await curlew(['load-images', '--dir', 'unpacked'], { cwd: box.path, env });
    assert.is(exitCode, 15);
    assert.match(stderr, /not the file that its package contains/);
    assert.is((await client(kind, env, 'images', 'ls', '-q')).trim(), '');
  });

  test(`${kind.title}: archives of kURL's packages are found and loaded`, async () => {
    await using box = await tree();
    await using daemon = await kind.start(box.at('runtime'));
    const env = envOf(kind, daemon);
    const images = ['k8s.gcr.io/kurl/pause:1', 'kurl/tool:2', 'replicated/kurl-util:3'].map(
      (name) => [name, makeImage([makeLayer({ name })], 'docker', name)] as const,
    );
    const [pause, tool, util] = images;
    if (pause === undefined || tool === undefined || util === undefined) throw new Error('no images');
    await writeArchives(box.at('kurl/addons/demo/2.0'), Object.fromEntries([pause]));
    await writeArchives(box.at('kurl/packages/kubernetes/1.30.0'), Object.fromEntries([tool]));
    await writeArchives(box.at('util'), Object.fromEntries([util]));
    await mkdir(box.at('kurl/shared'));
    await execa('bash', ['-c', 'gunzip <util/images/image0.tar.gz >kurl/shared/kurl-util.tar'], { cwd: box.path });
    const { packages } = await answer(box, env, '--dir', box.path);
    assert.equal(
      packages.map((one) => [one.package, one.missing]),
      [
        ['demo-2.0', ['k8s.gcr.io/kurl/pause:1']],
        ['kubernetes-1.30.0', ['docker.io/kurl/tool:2']],
        ['shared', ['docker.io/replicated/kurl-util:3']],
      ],
    );
    const names = (await client(kind, env, 'images', 'ls', '-q')).split('\n');
    assert.ok(names.includes('registry.k8s.io/kurl/pause:1'), 'with its second name');
    const again = await answer(box, env, '--dir', box.at('kurl'));
    assert.equal(
      again.packages.map(({ missing }) => missing),
      [[], [], []],
    );
  });
}

test.run();
