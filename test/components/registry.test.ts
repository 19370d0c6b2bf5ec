/** Pulling from Debian's registry, and what other tools make of the layouts and archives that come out of it. */
import { mkdir } from 'node:fs/promises';
import { hexOf } from '../../src/core/digest.ts';
import { download } from '../../src/platform/http/download.ts';
import { openImageArchive } from '../../src/formats/oci/read-image-archive.ts';
import { createRegistryClient } from '../../src/build/registry/client.ts';
import { ANONYMOUS } from '../../src/build/registry/credentials.ts';
import { formatImageLayout } from '../../src/formats/oci/oci-layout.ts';
import type { ResolvedImage } from '../../src/formats/oci/image.ts';
import { imageNames, parseImageRef, type ImageRef } from '../../src/core/image-ref.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { collector, quickHttp } from '../support/client.ts';
import { binaryLike, makeImage, makeIndex, makeLayer, pushImage, type Image } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { cannotRun, oracle, run, shell } from './support/programs.ts';
import { startContainerd, startDockerd, startRegistry, type RegistryDaemon } from './support/services.ts';

const test = suite('pulling from a real registry', { timeoutMs: 180_000 });
const BIG = binaryLike(3_000_000, 'registry', 1);

const layers = [
  makeLayer({ 'bin/a': BIG }),
  makeLayer({ 'bin/b': 'b' }, 'oci', 'none'),
  makeLayer({ 'bin/c': BIG.subarray(0, 200_000) }, 'oci', 'zstd'),
];
const amd = makeImage(layers.slice(0, 2), 'oci', 'amd');
const arm = makeImage(layers.slice(0, 1), 'oci', 'arm', 'arm64');
const zstd = makeImage(layers, 'oci', 'zstd');
const docker = makeImage([makeLayer({ d: BIG.subarray(5) }, 'docker')], 'docker');
const index = makeIndex([
  { platform: 'linux/amd64', image: amd },
  { platform: 'linux/arm64/v8', image: arm },
]);

let box: Tree;
let registry: RegistryDaemon;

function ref(name: string): ImageRef {
  const parsed = parseImageRef(`${registry.host}/${name}`);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

async function pull(name: string, signal: AbortSignal, arch: 'amd64' | 'arm64' = 'amd64'): Promise<ResolvedImage> {
  await using http = await quickHttp();
  const client = createRegistryClient({ http, credentials: ANONYMOUS });
  const image = await client.resolve(ref(name), { platform: { os: 'linux', arch }, signal });
  const bodies = new Map<string, Buffer>();
  for (const layer of image.layers) {
    const { write, body } = collector();
    await image.fetch(layer, { from: 0, write, signal });
    assert.is(digestOf(body()), layer.digest);
    bodies.set(layer.digest, body());
  }
  return {
    ...image,
    fetch: async ({ digest }, { write }) => {
      await write(bodies.get(digest) ?? Buffer.alloc(0));
    },
  };
}

/** A source layout as other tools keep it, by our generator. */
async function writeLayout(folder: string, name: string): Promise<void> {
  const all: Image[] = [amd, arm, zstd];
  const blobs = [index.manifest, ...all.flatMap((image) => [image.manifest, image.config, ...image.layers])];
  const rows = [
    { image: index, ref: name },
    { image: zstd, ref: 'zstd' },
  ];
  const manifests = rows.map(({ image, ref: text }) => ({
    mediaType: image.manifestType,
    digest: image.manifest.digest,
    size: image.manifest.data.byteLength,
    annotations: { 'org.opencontainers.image.ref.name': text },
  }));
  await writeTree(folder, {
    'oci-layout': '{"imageLayoutVersion":"1.0.0"}',
    'index.json': JSON.stringify({ schemaVersion: 2, manifests }),
    ...Object.fromEntries(blobs.map(({ digest, data }) => [`blobs/sha256/${hexOf(digest)}`, data])),
  });
}

/** Writes the layout that a package would hold. */
async function writeImages(folder: string, images: readonly ResolvedImage[], signal: AbortSignal): Promise<void> {
  const layout = formatImageLayout(images.map((image, at) => ({ id: `image${at}`, image })));
  for (const { path, data } of layout.files) await writeTree(folder, { [path]: data });
  for (const { path, descriptor, image } of layout.blobs) {
    const { write, body } = collector();
    await image.fetch(descriptor, { from: 0, write, signal });
    await writeTree(folder, { [path]: body() });
  }
}

const why = cannotRun('docker-registry', 'skopeo', 'ctr', 'containerd', 'dockerd', 'umoci');
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    box = await tree({});
    await mkdir(box.at('registry'));
    registry = await startRegistry(box.at('registry'));
    await writeLayout(box.at('source'), 'index');
    const to = `docker://${registry.host}`;
    const copy = ['copy', '-q', '--preserve-digests', '--all', '--dest-tls-verify=false'];
    await run('skopeo', [...copy, `oci:${box.at('source')}:index`, `${to}/team/index:1`]);
    await run('skopeo', [...copy, `oci:${box.at('source')}:zstd`, `${to}/team/zstd:1`]);
    await pushImage(registry.host, 'team/docker', '2', docker);
  });
  test.after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await box?.[Symbol.asyncDispose]();
  });

  for (const name of ['team/index:1', 'team/zstd:1', 'team/docker:2']) {
    test(`${name} is resolved to what skopeo sees, and its layers arrive with their digests`, async ({ signal }) => {
      const image = await pull(name, signal);
      const address = `docker://${registry.host}/${name}`;
      const raw = await run('skopeo', ['inspect', '--raw', '--tls-verify=false', address]);
      assert.is(digestOf(raw), image.resolved);
      const inspect = await run('skopeo', ['inspect', '--override-arch', 'amd64', '--tls-verify=false', address]);
      const seen = JSON.parse(inspect) as { Layers: string[] };
      assert.equal(
        image.layers.map(({ digest }) => digest),
        seen.Layers,
      );
    });
  }

  const noCrane = cannotRun(oracle('crane'));
  if (noCrane !== undefined) test.skip('what crane sees, pulls and pushes', noCrane);
  else {
    const crane = async (...args: readonly string[]): Promise<string> =>
      run(oracle('crane'), [...args.slice(0, 1), '--insecure', ...args.slice(1)]);

    for (const name of ['team/index:1', 'team/zstd:1', 'team/docker:2']) {
      test(`${name} is resolved to the digest, the manifest and the layers that crane sees`, async ({ signal }) => {
        const image = await pull(name, signal);
        const address = `${registry.host}/${name}`;
        assert.is(await crane('digest', address), image.resolved);
        assert.is(digestOf(await crane('manifest', address)), image.resolved);
        const manifest = await crane('manifest', '--platform', 'linux/amd64', address);
        assert.is(digestOf(manifest), image.digest);
        const { config, layers: seen } = JSON.parse(manifest) as {
          config: { digest: string };
          layers: readonly { digest: string }[];
        };
        assert.is(config.digest, image.config.descriptor.digest);
        assert.equal(
          seen.map(({ digest }) => digest),
          image.layers.map(({ digest }) => digest),
        );
      });
    }

    test('each platform of an index is the manifest that crane chooses', async ({ signal }) => {
      for (const arch of ['amd64', 'arm64'] as const) {
        const image = await pull('team/index:1', signal, arch);
        const platform = arch === 'amd64' ? 'linux/amd64' : 'linux/arm64/v8';
        const args = ['digest', '--platform', platform, `${registry.host}/team/index:1`] as const;
        assert.is(await crane(...args), image.digest);
      }
    });

    test('an index that crane pushes from a layout has the same digest, and is pulled', async ({ signal }) => {
      const [from, to] = ['team/index:1', 'team/again:1'].map((name) => `${registry.host}/${name}`);
      await crane('pull', '--format', 'oci', from ?? '', box.at('crane-oci'));
      await crane('push', '--index', box.at('crane-oci'), to ?? '');
      const copied = await pull('team/again:1', signal, 'arm64');
      assert.is(copied.digest, arm.manifest.digest);
      assert.is(await crane('digest', to ?? ''), copied.resolved);
    });

    test('crane pushes an image of the layout that a package holds, under the same digest', async ({ signal }) => {
      await writeImages(box.at('crane-push'), [await pull('team/index:1', signal)], signal);
      const address = `${registry.host}/team/ours:1`;
      await crane('push', box.at('crane-push'), address);
      assert.is(await crane('digest', address), amd.manifest.digest);
      // Without --fast it would read every layer as gzip.
      await crane('validate', '--fast', '--remote', address);
    });

    test("crane's tarball is read", async ({ signal }) => {
      const path = box.at('crane.tar');
      const name = `${registry.host}/team/index:1`;
      await crane('pull', '--platform', 'linux/amd64', name, path);
      const image = await openImageArchive(path, { id: 'app', arch: 'amd64', scratch: box.path, signal });
      assert.is(image.reference, name);
      assert.is(image.config.descriptor.digest, amd.config.digest);
      for (const layer of image.layers) {
        const { write, body } = collector();
        await image.fetch(layer, { from: 0, write, signal });
        assert.is(digestOf(body()), layer.digest);
      }
    });
  }

  test('the other platform is another manifest of the same index', async ({ signal }) => {
    const image = await pull('team/index:1', signal, 'arm64');
    assert.is(image.digest, arm.manifest.digest);
    assert.is(image.resolved, index.manifest.digest);
  });

  test('a lookup needs no body, and a missing image says so in the words of the registry', async ({ signal }) => {
    await using http = await quickHttp();
    const client = createRegistryClient({ http, credentials: ANONYMOUS });
    assert.is(await client.currentDigest(ref('team/index:1'), { signal }), index.manifest.digest);
    const error = await assert.rejectsWith(client.currentDigest(ref('team/none:1'), { signal }), 'NOT_FOUND');
    assert.match(error.message, /MANIFEST_UNKNOWN|NAME_UNKNOWN/);
  });

  test('a layer goes on from any byte', async ({ signal }) => {
    await using http = await quickHttp();
    const { write, body } = collector();
    const [layer] = amd.layers;
    const url = `http://${registry.host}/v2/team/index/blobs/${layer?.digest ?? ''}`;
    await download(http, { doing: 'fetch', url, from: 1_234_567, write, immutable: true }, { signal });
    assert.ok(body().equals(Buffer.from(layer?.data ?? '').subarray(1_234_567)));
  });

  test('containerd imports the layout under every name, a pinned index digest too', async ({ signal }) => {
    const pinned = `team/index:1@${index.manifest.digest}`;
    const images = [await pull(pinned, signal), await pull('team/docker:2', signal)];
    await writeImages(box.at('ctr'), images, signal);
    await using containerd = await startContainerd(box.at('containerd'));
    const ctr = `ctr --address ${containerd.socket} -n k8s.io`;
    await shell(`tar -C "$1" -cf - . | ${ctr} images import --no-unpack -`, box.at('ctr'));
    const rows = await shell(`${ctr} images ls`);
    const found = new Map(
      rows
        .split('\n')
        .slice(1)
        .map((row) => row.split(/\s+/))
        .map(([name, , digest]) => [name, digest]),
    );
    const expected = [
      ...imageNames(ref(pinned)).map((name) => [name, amd.manifest.digest] as const),
      [`${registry.host}/team/docker:2`, docker.manifest.digest] as const,
    ];
    for (const [name, digest] of expected) assert.is(found.get(name), digest);
    assert.is(found.size, expected.length);
    const check = await shell(`${ctr} images check`);
    assert.is([...check.matchAll(/complete \(/g)].length, expected.length);
  });

  test('docker loads it under its tags with its ids, skopeo and umoci read it', async ({ signal }) => {
    const images = [await pull('team/index:1', signal), await pull('team/docker:2', signal)];
    await writeImages(box.at('load'), images, signal);
    await using engine = await startDockerd(box.at('docker'));
    const client = `/usr/bin/docker --host unix://${engine.socket}`;
    await shell(`tar -C "$1" -cf - . | ${client} load`, box.at('load'));
    for (const image of images) {
      const id = await shell(`${client} image inspect --format '{{.Id}}' "$1"`, image.reference);
      assert.is(id, image.config.descriptor.digest);
    }
    const [oci, schema2] = images;
    const raw = await run('skopeo', ['inspect', '--raw', `oci:${box.at('load')}:${oci?.reference ?? ''}`]);
    assert.is(digestOf(raw), oci?.digest);
    // skopeo's reader of OCI layouts looks for OCI manifests only; Docker's are found by manifest.json.
    await shell('tar -C "$1" -cf "$2" .', box.at('load'), box.at('load.tar'));
    const archive = `docker-archive:${box.at('load.tar')}:${schema2?.reference ?? ''}`;
    const config = await run('skopeo', ['inspect', '--raw', '--config', archive]);
    assert.is(digestOf(config), schema2?.config.descriptor.digest);
    const listed = await run('umoci', ['ls', '--layout', box.at('load')]);
    assert.equal(listed.trim().split('\n').toSorted(), images.map(({ reference }) => reference).toSorted());
    const saved = box.at('saved.tar');
    await shell(`${client} save -o "$1" "$2"`, saved, `${registry.host}/team/index:1`);
    const options = { id: 'app', arch: 'amd64', scratch: box.path, signal } as const;
    const again = await openImageArchive(saved, options);
    assert.is(again.config.descriptor.digest, amd.config.digest);
    for (const layer of again.layers) {
      const { write, body } = collector();
      await again.fetch(layer, { from: 0, write, signal });
      assert.is(digestOf(body()), layer.digest);
    }
  });

  for (const form of ['docker-archive', 'oci-archive']) {
    test(`skopeo's ${form} is read`, async ({ signal }) => {
      const path = box.at(`${form}.tar`);
      const name = `${registry.host}/team/index:1`;
      const from = ['copy', '-q', '--override-arch', 'amd64', '--src-tls-verify=false', `docker://${name}`];
      await run('skopeo', [...from, `${form}:${path}:${name}`]);
      const image = await openImageArchive(path, { id: 'app', arch: 'amd64', scratch: box.path, signal });
      assert.is(image.reference, name);
      for (const layer of image.layers) {
        const { write, body } = collector();
        await image.fetch(layer, { from: 0, write, signal });
        assert.is(digestOf(body()), layer.digest);
      }
    });
  }
}

test.run();
