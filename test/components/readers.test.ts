/** Packages in the hands of everybody else: archive readers, image tools, container runtimes. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import * as tar from 'tar';
import * as assert from '../support/assert.ts';
import { curlewOk } from '../support/curlew.ts';
import type { Image } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { cannotRun, oracle, ROOT, run, shell } from './support/programs.ts';
import { manifestDigest, NAME, PACKAGE, pushSample, sampleFiles, VERSION } from './support/sample.ts';
import { startContainerd, startDockerd, startRegistry } from './support/services.ts';

const test = suite('packages in other readers', { timeoutMs: 180_000 });
const PREFIX = `addons/${NAME}/${VERSION}/`;

interface Listed {
  readonly mode: number;
  readonly size: number;
  readonly sha256: string;
}
type Listing = Readonly<Record<string, Listed>>;

let box: Tree;
let images: ReadonlyMap<string, Image>;
const archive = (): string => box.at('out', PACKAGE);

/** What readers agree on: every file but the table of contents, which only some of them show. */
function listing(rows: Iterable<readonly [string, Listed]>): Listing {
  const kept = [...rows].filter(([name]) => name !== 'stargz.index.json');
  return Object.fromEntries(kept.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function fromJsonLines(text: string): Listing {
  const rows = text.split('\n').map((line) => JSON.parse(line) as Listed & { name: string });
  return listing(rows.map(({ name, mode, size, sha256 }) => [name, { mode, size, sha256 }]));
}

async function fromFolder(folder: string): Promise<Listing> {
  const rows: (readonly [string, Listed])[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const data = await readFile(path);
    const { mode } = await stat(path);
    const sha256 = createHash('sha256').update(data).digest('hex');
    rows.push([relative(folder, path), { mode: mode & 0o7777, size: data.byteLength, sha256 }]);
  }
  return listing(rows);
}

async function byPython(): Promise<string> {
  return run('python3', [join(ROOT, 'test/oracles/list.py'), archive()]);
}

async function extracted(name: string): Promise<string> {
  const folder = box.at(name);
  await mkdir(folder);
  return folder;
}

/** The folder `images/` as plain `tar xzf` leaves it. */
async function imageLayout(): Promise<string> {
  const folder = box.at('layout', PREFIX, 'images');
  if (!(await readdir(box.path)).includes('layout')) {
    await run('tar', ['-xzf', archive(), '-C', await extracted('layout')]);
  }
  return folder;
}

const reason = cannotRun('docker-registry', 'skopeo', 'bsdtar', 'python3', 'containerd', 'ctr', 'dockerd');

if (reason === undefined) {
  test.before(async () => {
    box = await tree();
    await using registry = await startRegistry(box.at('registry'));
    images = await pushSample(registry.host);
    await writeTree(box.at('addons', NAME, VERSION), sampleFiles());
    const mirror = ['--registry-mirror', `registry.example=${registry.host}`];
    await curlewOk(['build', NAME, '--out', 'out', ...mirror], { cwd: box.path });
  });
  test.after(async () => box[Symbol.asyncDispose]());

  test('Python reads it, and every header is plain: no owner, no time', async () => {
    const rows = (await byPython()).split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.ok(rows.length > 15);
    for (const row of rows) {
      assert.equal([row['mtime'], row['uid'], row['gid'], row['owner']], [0, 0, 0, ':'], String(row['name']));
    }
  });

  test('every own file is in it with its bytes and a plain mode', async () => {
    const files = fromJsonLines(await byPython());
    for (const [path, content] of Object.entries(sampleFiles())) {
      const sha256 = createHash('sha256').update(content).digest('hex');
      const mode = typeof content === 'string' && content.startsWith('#!') ? 0o755 : 0o644;
      assert.equal(files[`${PREFIX}${path}`], { mode, size: Buffer.byteLength(content), sha256 }, path);
    }
  });

  test('the eStargz reader of containerd verifies every chunk and sees the same files', async () => {
    assert.equal(fromJsonLines(await run(oracle('estargz'), [archive()])), fromJsonLines(await byPython()));
  });

  test('GNU tar extracts the same files', async () => {
    const folder = await extracted('gnu');
    await run('tar', ['-xpzf', archive(), '-C', folder]);
    assert.equal(await fromFolder(folder), fromJsonLines(await byPython()));
  });

  test('bsdtar extracts the same files', async () => {
    const folder = await extracted('bsd');
    // It converts names to the locale's encoding, and refuses those that have no place in it.
    await run('bsdtar', ['-xpf', archive(), '-C', folder], { env: { LC_ALL: 'C.UTF-8' } });
    assert.equal(await fromFolder(folder), fromJsonLines(await byPython()));
  });

  test('node-tar extracts the same files', async () => {
    const folder = await extracted('node');
    await tar.extract({ file: archive(), cwd: folder, strict: true });
    assert.equal(await fromFolder(folder), fromJsonLines(await byPython()));
  });

  test('gzip finds nothing wrong', async () => {
    await run('gzip', ['-t', archive()]);
  });

  test('each manifest is kept byte for byte', async () => {
    for (const [reference, image] of images) {
      const hex = manifestDigest(image).slice('sha256:'.length);
      const kept = await readFile(join(await imageLayout(), 'blobs/sha256', hex));
      assert.ok(kept.equals(image.manifest.data), reference);
    }
  });

  // From an OCI layout, skopeo takes only images with OCI manifests; those with Docker's it takes by manifest.json.
  test('skopeo finds an OCI image by its reference and copies it, which checks every blob', async () => {
    const layout = await imageLayout();
    for (const [reference, image] of images) {
      if (!image.manifestType.includes('.oci.')) continue;
      const raw = await shell('skopeo inspect --raw "oci:$1:$2" | sha256sum', layout, reference);
      assert.is(`sha256:${raw.slice(0, 64)}`, manifestDigest(image), reference);
      await run('skopeo', ['--insecure-policy', 'copy', '-q', `oci:${layout}:${reference}`, `dir:${box.at('oci')}`]);
    }
  });

  test('skopeo takes every image from it as from a docker archive, with its id', async () => {
    await run('tar', ['-C', await imageLayout(), '-cf', box.at('images.tar'), '.']);
    for (const [index, [reference, image]] of [...images].entries()) {
      const source = `docker-archive:${box.at('images.tar')}:${reference}`;
      const config = await shell('skopeo inspect --config --raw "$1" | sha256sum', source);
      assert.is(`sha256:${config.slice(0, 64)}`, image.config.digest, reference);
      await run('skopeo', ['--insecure-policy', 'copy', '-q', source, `dir:${box.at(`dir${index}`)}`]);
    }
  });

  test('a layer that two images share is there once', async () => {
    const blobs = await readdir(join(await imageLayout(), 'blobs/sha256'));
    // Two configs, two manifests, one shared and two own layers.
    assert.is(blobs.length, 7);
  });

  test('containerd imports the images under their references, with the digests of the registry', async () => {
    await using containerd = await startContainerd(box.at('containerd'));
    const ctr = ['-a', containerd.socket, '-n', 'k8s.io', 'images'];
    await shell('tar -C "$1" -cf - . | ctr "${@:2}" import -', await imageLayout(), ...ctr);
    const lines = (await run('ctr', [...ctr, 'ls'])).split('\n').slice(1);
    const found = new Map(lines.map((line) => line.split(/\s+/)).map(([name = '', , digest = '']) => [name, digest]));
    for (const [reference, image] of images) assert.is(found.get(reference), manifestDigest(image), reference);
    assert.is((await run('ctr', [...ctr, 'check', '-q'])).split('\n').length, found.size);
  });

  test('a Docker engine loads the images, with the ids of the registry', async () => {
    await using docker = await startDockerd(box.at('docker'));
    const host = ['-H', `unix://${docker.socket}`];
    await shell('tar -C "$1" -cf - . | /usr/bin/docker "${@:2}" load', await imageLayout(), ...host);
    for (const [reference, image] of images) {
      const id = await run('/usr/bin/docker', [...host, 'image', 'inspect', '--format', '{{.Id}}', reference]);
      assert.is(id, image.config.digest, reference);
    }
  });

  test('our own verify agrees', async () => {
    await curlewOk(['verify', archive()], { cwd: box.path });
  });
} else {
  test.skip('all of them', reason);
}

test.run();
