/** Images of packages into real container runtimes: containerd 1.6 and 2, Docker. Needs root. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ProgressEvent } from '../../src/core/events.ts';
import type { AddonJson } from '../../src/core/package.ts';
import { addonRef } from '../../src/core/ref.ts';
import { findImageRuntime } from '../../src/runtime/images/find-runtime.ts';
import { folderFiles } from '../../src/runtime/images/folder-files.ts';
import type { ImageRuntime } from '../../src/runtime/images/image-runtime.ts';
import { loadImages, type LoadedImages } from '../../src/runtime/images/load.ts';
import { loadPackages } from '../../src/runtime/images/load-packages.ts';
import { planImages } from '../../src/runtime/images/load-plan.ts';
import { archiveImages, type RequiredImage } from '../../src/runtime/images/required-images.ts';
import type { SourcePackage } from '../../src/runtime/node/source.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { binaryLike, makeImage, makeLayer, plainTar, type Image, type Layer } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { blobPath, writeArchives, writeLayout, type ImagePackage } from '../support/image-packages.ts';
import { client, envOf, runtimeAt, runtimeKinds, type Env, type RuntimeKind } from './support/image-runtimes.ts';
import type { SocketDaemon } from './support/services.ts';

const test = suite('images of packages', { timeoutMs: 180_000 });

const LAYER = 300_000;
const NONDISTRIBUTABLE = 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip';

function layer(seed: string): Layer {
  return makeLayer({ [`usr/${seed}`]: binaryLike(LAYER, seed) });
}

/** Sizes of what an image has, without the layers named. */
function sizeOf(image: Image, ...without: readonly Layer[]): number {
  const layers = image.layers.filter((one) => !without.includes(one));
  return [image.manifest, image.config, ...layers].reduce((sum, { data }) => sum + data.byteLength, 0);
}

/** A package that is not extracted, as a plan sees it. */
async function sourceOf(name: string, { folder, images }: ImagePackage): Promise<SourcePackage> {
  const files = folderFiles(folder);
  const paths = (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  const sizes = await Promise.all(paths.map(async (path) => ({ path, size: (await files.size(path)) ?? 0 })));
  const addon = { images, imageFormat: 'oci' } as unknown as AddonJson;
  return {
    ref: addonRef(name, '1.0'),
    addon,
    files: sizes.map((file) => ({ ...file, mode: 0o644, digest: `sha256:${'0'.repeat(64)}` })),
    omitted: [],
    extract: async () => undefined,
    read: files.read,
  };
}

for (const kind of runtimeKinds()) {
  if (kind.why === undefined) testRuntime(kind);
  else test.skip(kind.title, kind.why);
}

function testRuntime(kind: RuntimeKind): void {
  const { title } = kind;
  let box: Tree;
  let daemon: SocketDaemon;
  let env: Env;
  let runtime: ImageRuntime;
  const load = async (images: readonly RequiredImage[], notes: string[] = []): Promise<LoadedImages> =>
    loadImages(runtime, { doing: 'load', images, note: (text) => notes.push(text) }, { signal: never });

  const idsOf = async (...names: readonly string[]): Promise<readonly (string | undefined)[]> => {
    const known = await runtime.lookUp(names, { signal: never });
    return names.map((name) => known.get(name)?.id);
  };

  test(`${title}: it answers`, async () => {
    box = await tree();
    daemon = await kind.start(box.at('runtime'));
    env = envOf(kind, daemon);
    runtime = await runtimeAt(kind, env, never);
  });

  test(`${title}: gets what it lacks, once, and of the next image only the blobs that it lacks`, async () => {
    const base = layer(`${title} base`);
    const one = makeImage([base, layer(`${title} one`)]);
    const two = makeImage([base, layer(`${title} two`)]);
    const first = await writeLayout(box.at('first'), { 'registry.test/first/one:1': one, 'busybox-like:1': two });
    assert.equal(await load(first.wanted()), {
      references: ['registry.test/first/one:1', 'docker.io/library/busybox-like:1'],
      bytes: sizeOf(one) + sizeOf(two, base),
    });
    assert.equal(await load(first.wanted()), { references: [], bytes: 0 }, 'what is there is not loaded again');
    const three = makeImage([base, layer(`${title} three`)], 'docker');
    const second = await writeLayout(box.at('second'), { 'registry.test/first/three:1': three });
    // Not even to be read: the runtime has it.
    await rm(join(second.folder, 'images', blobPath(base.digest)));
    assert.equal(await load(second.wanted()), {
      references: ['registry.test/first/three:1'],
      bytes: sizeOf(three, base),
    });
    // A second name costs no layers.
    const renamed = await writeLayout(box.at('renamed'), { 'registry.test/first/other:1': one });
    const { bytes } = await load(renamed.wanted());
    assert.is(bytes, kind.name === 'docker' ? sizeOf(one, ...one.layers) : 0);
  });

  test(`${title}: loads images without layers, with layers that are not to be distributed, and without a platform`, async () => {
    const name = (of: string): string => `registry.test/odd/${of}:1`;
    const odd = {
      [name('empty')]: makeImage([], 'oci', title),
      [name('none')]: makeImage([layer(`${title} none`)], 'oci', 'none', '', ''),
      [name('other')]: makeImage([layer(`${title} other`)], 'oci', 'other', 'arm64'),
      [name('alias')]: makeImage([layer(`${title} alias`)], 'oci', 'alias', 'x86_64'),
      [name('foreign')]: makeImage([{ ...layer(`${title} foreign`), mediaType: NONDISTRIBUTABLE }], 'oci', 'foreign'),
    };
    const made = await writeLayout(box.at('odd'), odd);
    assert.equal((await load(made.wanted())).references, Object.keys(odd));
    assert.equal(await load(made.wanted()), { references: [], bytes: 0 });
    if (kind.name === 'docker') return;
    const archive = await writeArchives(box.at('odd-archive'), { [name('archive')]: makeImage([], 'oci', 'archive') });
    await load(archive.wanted());
    assert.equal(await load(archive.wanted()), { references: [], bytes: 0 });
  });

  test(`${title}: an image that cannot be loaded stops no other one, of no package, and is named`, async () => {
    const name = (of: string): string => `registry.test/bad/${of}:1`;
    const bad = makeImage([layer(`${title} bad`)]);
    const images = { [name('bad')]: bad, [name('good')]: makeImage([layer(`${title} good`)]) };
    const broken = await writeLayout(box.at('bad'), {
      ...images,
      [name('windows')]: makeImage([layer(`${title} windows`)], 'oci', 'windows', 'amd64', 'windows'),
    });
    const fine = await writeLayout(box.at('fine'), { [name('fine')]: makeImage([layer(`${title} fine`)]) });
    await writeFile(join(broken.folder, 'images', blobPath(bad.layers[0]?.digest ?? bad.config.digest)), 'x');
    const packages = [broken, fine].map((one, at) => ({ id: `${at}`, title: `web-${at}`, images: one.wanted() }));
    const error = await assert.rejectsWith(
      loadPackages(runtime, packages, { report: () => undefined, signal: never }),
      'IMAGE_INVALID',
      /bad\/windows:1 is for "windows\/amd64"/,
    );
    assert.match(error.message, name('bad'));
    const ids = await idsOf(...['good', 'fine', 'bad', 'windows'].map(name));
    assert.equal(
      ids.map((id) => id !== undefined),
      [true, true, false, false],
    );
  });

  test(`${title}: removes the images that it is asked to, but none that a container uses or that has another name`, async () => {
    const [gone, used, shared] = ['gone', 'used', 'shared'].map((seed) => makeImage([layer(`${title} ${seed}`)]));
    const name = (of: string): string => `registry.test/remove/${of}:1`;
    const all = { [name('gone')]: gone, [name('used')]: used, [name('shared')]: shared, [name('second')]: shared };
    await load((await writeLayout(box.at('remove'), all as Readonly<Record<string, Image>>)).wanted());
    if (kind.name === 'docker') await client(kind, env, 'container', 'create', '--name', 'user', name('used'), 'x');
    else {
      await client(kind, env, 'containers', 'create', name('used'), 'user');
      const [id = ''] = await idsOf(name('gone'));
      const [other = ''] = await idsOf(name('shared'));
      // Names that Kubernetes' part of containerd uses.
      await client(kind, env, 'images', 'tag', name('gone'), `registry.test/remove/gone@${id}`);
      await client(kind, env, 'images', 'tag', name('gone'), `sha256:${'a'.repeat(64)}`);
      await client(kind, env, 'images', 'tag', name('shared'), `registry.test/remove/shared@${other}`);
    }
    const asked = ['gone', 'used', 'shared', 'never'].map(name);
    assert.equal(await runtime.remove(asked, { signal: never }), {
      removed: [name('gone'), name('shared')],
      used: [name('used')],
    });
    const [a, b, c, d] = await idsOf(...['gone', 'used', 'shared', 'second'].map(name));
    assert.equal([a, b !== undefined, c, d !== undefined], [undefined, true, undefined, true]);
    const list = await client(kind, env, 'images', ...(kind.name === 'docker' ? [] : ['list', '--quiet']));
    assert.not.match(list, /remove\/gone|sha256:a{64}/);
    if (kind.name !== 'docker') assert.match(list, 'remove/shared@sha256:');
    await client(kind, env, 'container', 'rm', 'user');
  });

  test(`${title}: a name that stands for another image is led to the right one`, async () => {
    const [old, fresh] = [makeImage([layer(`${title} old`)]), makeImage([layer(`${title} fresh`)])];
    await load((await writeLayout(box.at('old'), { 'registry.test/moved/app:1': old })).wanted());
    const { references } = await load(
      (await writeLayout(box.at('new'), { 'registry.test/moved/app:1': fresh })).wanted(),
    );
    assert.equal(references, ['registry.test/moved/app:1']);
  });

  test(`${title}: images pinned by digest answer to their digest`, async () => {
    const [pinned, bare] = [makeImage([layer(`${title} pinned`)]), makeImage([layer(`${title} bare`)])];
    const index = `sha256:${'ab'.repeat(32)}`;
    const written = [`registry.test/pin/tagged:1@${index}`, `registry.test/pin/bare@${bare.manifest.digest}`] as const;
    const { wanted } = await writeLayout(box.at('pins'), { [written[0]]: pinned, [written[1]]: bare });
    const notes: string[] = [];
    assert.equal((await load(wanted(), notes)).references, written);
    assert.equal((await load(wanted())).references, []);
    const names = [`registry.test/pin/tagged@${index}`, written[1]];
    const ids = await idsOf('registry.test/pin/tagged:1', ...names);
    if (kind.name === 'docker') {
      assert.equal(ids, [pinned.config.digest, undefined, undefined]);
      assert.match(notes.join('\n'), new RegExp(`docker cannot set the name ${names[0] ?? ''}`));
    } else {
      assert.equal(
        ids,
        [pinned, pinned, bare].map(({ manifest }) => manifest.digest),
      );
      assert.equal(notes, []);
    }
  });

  test(`${title}: Kubernetes' images get the names of both registries, but never take a name away`, async () => {
    const pause = makeImage([layer(`${title} pause`)]);
    const dns = makeImage([layer(`${title} dns`)]);
    const taken = makeImage([layer(`${title} taken`)]);
    await load((await writeLayout(box.at('taken'), { 'registry.k8s.io/etcd:1': taken })).wanted());
    const k8s = await writeLayout(box.at('k8s'), {
      'k8s.gcr.io/pause:1': pause,
      'registry.k8s.io/coredns/coredns:v1': dns,
      'k8s.gcr.io/etcd:1': pause,
    });
    assert.is((await load(k8s.wanted())).references.length, 3);
    const names = ['registry.k8s.io/pause:1', 'k8s.gcr.io/coredns/coredns:v1', 'registry.k8s.io/coredns:v1'];
    const ids = [pause, dns, dns, taken].map(
      ({ config, manifest }) => (kind.name === 'docker' ? config : manifest).digest,
    );
    assert.equal(await idsOf(...names, 'registry.k8s.io/etcd:1'), ids);
    await client(kind, env, ...(kind.name === 'docker' ? ['image'] : ['images']), 'rm', 'registry.k8s.io/pause:1');
    assert.equal((await load(k8s.wanted())).references, [], 'a name alone is given again');
    assert.is((await runtime.lookUp(['registry.k8s.io/pause:1'], { signal: never })).size, 1);
  });

  test(`${title}: archives of docker's form are loaded once`, async () => {
    const base = layer(`${title} archive base`);
    const [one, two] = [makeImage([base, layer(`${title} a1`)]), makeImage([base])];
    const archives = await writeArchives(box.at('archives'), { 'registry.test/archive/one:1': one, 'two:1': two });
    assert.equal((await load(archives.wanted())).references, [
      'registry.test/archive/one:1',
      'docker.io/library/two:1',
    ]);
    assert.equal(await load(archives.wanted()), { references: [], bytes: 0 });
  });

  test(`${title}: archives as docker save writes them tell their names themselves`, async () => {
    const image = makeImage(['x', 'y'].map((path) => makeLayer({ [path]: `${title} ${path}` }, 'oci', 'none')));
    const hex = image.config.digest.slice(7);
    const rows = [
      {
        Config: `${hex}.json`,
        RepoTags: ['saved/app:1', 'registry.test/saved:2'],
        Layers: ['0/layer.tar', '1/layer.tar'],
      },
    ];
    const tar = plainTar({
      '0/layer.tar': image.layers[0]?.data ?? '',
      '1/layer.tar': image.layers[1]?.data ?? '',
      [`${hex}.json`]: image.config.data,
      'manifest.json': JSON.stringify(rows),
    });
    await mkdir(box.at('saved/images'), { recursive: true });
    await writeFile(box.at('saved/images/app.tar.gz'), gzipSync(tar));
    await writeFile(box.at('saved/images/plain.tar'), tar);
    for (const [path, references] of [
      ['images/app.tar.gz', ['docker.io/saved/app:1, registry.test/saved:2']],
      ['images/plain.tar', []],
    ] as const) {
      const wanted = await archiveImages(folderFiles(box.at('saved')), path, { signal: never });
      assert.equal((await load(wanted)).references, references);
    }
  });

  test(`${title}: two packages at once bring what they share once, and as much as was planned`, async () => {
    const base = layer(`${title} pair base`);
    const [left, right] = ['l', 'r'].map((seed) => makeImage([base, layer(`${title} ${seed}`)]));
    if (left === undefined || right === undefined) throw new Error('no images');
    const packages = [
      { name: 'left', made: await writeLayout(box.at('left'), { 'registry.test/pair/left:1': left }) },
      {
        name: 'right',
        made: await writeLayout(box.at('right'), {
          'registry.test/pair/right:1': right,
          'registry.test/pair/copy:1': right,
        }),
      },
    ];
    const sources = await Promise.all(packages.map(async ({ name, made }) => sourceOf(name, made)));
    const planned = await planImages(runtime, sources, { signal: never });
    assert.equal(
      planned.map(({ addon, missing }) => [addon, missing.length]),
      [
        ['left', 1],
        ['right', 2],
      ],
    );
    assert.equal(
      planned.map(({ bytes }) => bytes),
      [sizeOf(left), sizeOf(right, base)],
    );
    assert.equal(await planImages(undefined, sources, { signal: never }), planned, 'as on a node without a runtime');
    const events: ProgressEvent[] = [];
    const wanted = packages.map(({ name, made }) => ({ id: name, title: name, images: made.wanted() }));
    const loaded = await loadPackages(runtime, wanted, { report: (event) => events.push(event), signal: never });
    const own = kind.name === 'docker' ? sizeOf(right, ...right.layers) : 0;
    assert.is(
      loaded.reduce((sum, { bytes }) => sum + bytes, 0),
      sizeOf(left) + sizeOf(right, base) + own,
    );
    assert.ok(events.some((event) => event.type === 'step-progress' && event.bytes > LAYER));
    assert.equal(
      await planImages(runtime, sources, { signal: never }),
      planned.map(({ addon }) => ({ addon, missing: [], bytes: 0 })),
    );
  });

  test(`${title}: a damaged blob is refused, and what is whole can be loaded later`, async () => {
    const image = makeImage([layer(`${title} damaged`)]);
    const made = await writeLayout(box.at('damaged'), { 'registry.test/damaged/app:1': image });
    const path = join(made.folder, 'images', blobPath(image.layers[0]?.digest ?? image.config.digest));
    const [{ data } = { data: new Uint8Array() }] = image.layers;
    await writeFile(path, Buffer.from(data).fill(0x41, 1000, 2000));
    await assert.rejectsWith(load(made.wanted()), 'IMAGE_LOAD_FAILED', new RegExp(`load into ${kind.name}: `));
    await writeFile(path, data);
    assert.is((await load(made.wanted())).references.length, 1);
  });

  test(`${title}: it ends`, async () => {
    await daemon[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });
}

test('a machine where none answers has no runtime', async ({ signal }) => {
  const env = {
    PATH: process.env['PATH'] ?? '',
    CONTAINERD_ADDRESS: '/nowhere.sock',
    DOCKER_HOST: 'unix:///nowhere.sock',
  };
  assert.is(await findImageRuntime({ env, signal }), undefined);
  assert.is(await findImageRuntime({ env: { ...env, PATH: '/nowhere' }, signal }), undefined);
});

test.run();
