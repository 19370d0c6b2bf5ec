import { execa } from 'execa';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { extractEntries } from '../../src/formats/archive/extract.ts';
import { openFileSource, readIndex } from '../../src/formats/archive/read.ts';
import { pruneCache } from '../../src/build/cache.ts';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import { resetsAtHalf, sendsOtherBytes } from '../support/faults.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tarOf } from '../support/tar-file.ts';
import { tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('build');

const base = makeLayer({ 'usr/lib/base': noise(3_000_000, 1) });
const one = makeImage([base, makeLayer({ 'bin/one': noise(200_000, 2) })], 'oci', 'one');
const two = makeImage([base, makeLayer({ 'bin/two': noise(1_500_000, 3) }, 'docker')], 'docker', 'two');
const images = { 'team/one:1': one, 'team/two:1': two };

const both = 'image one images.example/team/one:1\nimage two images.example/team/two:1\n';

async function listing(path: string): Promise<readonly string[]> {
  return (await execa('tar', ['-tzf', path])).stdout.split('\n');
}

test('an empty Manifest gives a package of the own files', async () => {
  await using box = await tree(addon('a', '', { 'deploy/a.yaml': 'a: 1\n' }));
  const [built] = await buildAll({ root: box.path });
  const names = ['addon.json', 'Manifest', 'Manifest.lock', 'install.sh', 'deploy/a.yaml'];
  const expected = [...names.map((name) => `addons/a/1.0/${name}`), 'stargz.index.json'];
  assert.equal(await listing(built?.path ?? ''), expected);
  assert.equal(await readdir(box.at('out')), ['a-1.0.tar.gz']);
});

test('images, assets and Deps of one add-on are in its package, each blob fetched once', async () => {
  await using registry = await startRegistry(images);
  await using web = await serveFiles({ tool: 'x'.repeat(2_000_000), 'tool.tgz': noise(90_000) });
  const manifest = `${both}asset tool ${web.url}/tool\nasset t.tgz ${web.url}/tool.tgz\nasset own ./data\napt24 jq\n`;
  await using box = await tree(addon('a', manifest, { data: 'mine' }));
  const [built] = await buildAll({ root: box.path, registry: registry.host });
  const layers = [...one.layers, ...two.layers].map(({ digest }) => digest);
  for (const digest of new Set(layers)) {
    const asked = registry.log.filter(({ path }) => path.endsWith(digest));
    assert.is(asked.length, 1, digest);
  }
  const names = (await listing(built?.path ?? '')).map((name) => name.replace('addons/a/1.0/', ''));
  for (const name of ['assets/tool', 'assets/t.tgz', 'assets/own', 'ubuntu-24.04/Deps', 'images/index.json']) {
    assert.ok(names.includes(name), name);
  }
  assert.equal(
    built?.addon.images.map(({ id, digest }) => [id, digest]),
    [
      ['one', one.manifest.digest],
      ['two', two.manifest.digest],
    ],
  );
  assert.equal(await readdir(box.at('cache/assets')).then((all) => all.filter((name) => !name.endsWith('.json'))), []);
});

test('a manifest of an image that begins with a byte order mark is refused', async () => {
  const mark = Buffer.concat([Buffer.from('\u{FEFF}'), one.manifest.data]);
  const image = { ...one, manifest: { data: mark, digest: digestOf(mark) } };
  await using registry = await startRegistry({ 'team/marked:1': image });
  await using box = await tree(addon('a', 'image m images.example/team/marked:1\n'));
  await assert.rejectsWith(buildAll({ root: box.path, registry: registry.host }), 'IMAGE_INVALID', /byte order mark/);
});

test('with nothing changed nothing is written, and only heads are asked for', async () => {
  await using registry = await startRegistry(images);
  await using web = await serveFiles({ tool: 'x'.repeat(1000) });
  await using box = await tree(addon('a', `${both}asset tool ${web.url}/tool\n`));
  await buildAll({ root: box.path, registry: registry.host });
  const [asked, fetched] = [registry.log.length, web.log.length];
  const [again] = await buildAll({ root: box.path, registry: registry.host });
  assert.is(again?.outcome, 'unchanged');
  const since = [...registry.log.slice(asked), ...web.log.slice(fetched)];
  assert.ok(since.every(({ method, path }) => method === 'HEAD' || path === '/v2/'));
});

test('a package that is what it should be leaves nothing begun beside it', async () => {
  await using box = await tree(addon('a', ''));
  await buildAll({ root: box.path });
  await writeFile(box.at('out/.a-1.0.tar.gz.partial'), 'of another Manifest, killed half way');
  const [again] = await buildAll({ root: box.path });
  assert.is(again?.outcome, 'unchanged');
  assert.equal(await readdir(box.at('out')), ['a-1.0.tar.gz']);
});

test('a lock that is committed beside the Manifest makes no difference to the package', async () => {
  await using box = await tree(addon('a', '', { 'Manifest.lock': '{}\n' }));
  const [first] = await buildAll({ root: box.path });
  assert.is((await listing(first?.path ?? '')).filter((name) => name.endsWith('Manifest.lock')).length, 1);
  const [again] = await buildAll({ root: box.path });
  assert.is(again?.because, 'unchanged');
});

test('files that deflate to next to nothing are stored, so that nobody takes the package for a bomb', async () => {
  const zeros = { 'small.img': Buffer.alloc(1_000_000), 'large.img': Buffer.alloc(3_000_000) };
  await using box = await tree(addon('a', '', zeros));
  const [built] = await buildAll({ root: box.path });
  const { signal } = new AbortController();
  await using source = await openFileSource(built?.path ?? '');
  await extractEntries(source, await readIndex(source, { signal }), { into: box.at('into'), signal });
  for (const [name, bytes] of Object.entries(zeros)) {
    assert.ok((await readFile(box.at('into/addons/a/1.0', name))).equals(bytes), name);
  }
});

test('a changed own file costs no byte of images or assets', async () => {
  await using registry = await startRegistry(images);
  await using web = await serveFiles({ 'tool.tgz': noise(900_000), text: 'y'.repeat(3_000_000) });
  await using box = await tree(addon('a', `${both}asset tool.tgz ${web.url}/tool.tgz\nasset text ${web.url}/text\n`));
  await buildAll({ root: box.path, registry: registry.host });
  const [asked, fetched] = [registry.log.length, web.log.length];
  await writeFile(box.at('addons/a/1.0/install.sh'), 'a() { echo new; }\n');
  const [again] = await buildAll({ root: box.path, registry: registry.host });
  assert.is(again?.because, 'install.sh differs');
  assert.is(again?.fetched, 0);
  const layers = new Set([...one.layers, ...two.layers].map(({ digest }) => `/blobs/${digest}`));
  const since = registry.log.slice(asked).filter(({ path }) => layers.has(path.slice(path.indexOf('/blobs/'))));
  assert.equal(since, []);
  assert.ok(web.log.slice(fetched).every(({ method }) => method === 'HEAD'));
});

test('a tag that names another image is noticed', async () => {
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  {
    await using registry = await startRegistry(images);
    await buildAll({ root: box.path, registry: registry.host });
  }
  await using registry = await startRegistry({ 'team/one:1': two });
  const [again] = await buildAll({ root: box.path, registry: registry.host });
  assert.match(again?.because ?? '', /now names another image/);
});

test('a registry that cannot say what a tag names now is told with the add-on that asks', async () => {
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  {
    await using registry = await startRegistry(images);
    await buildAll({ root: box.path, registry: registry.host });
  }
  await using registry = await startRegistry({});
  const failed = buildAll({ root: box.path, registry: registry.host });
  await assert.rejectsWith(failed, 'NOT_FOUND', /^a-1\.0: .*images\.example\/team\/one:1/);
});

test('the same inputs give the same bytes, whatever the folder, times, modes and order of creation', async () => {
  await using registry = await startRegistry(images);
  const files = addon('a', both, { 'z.yaml': 'z', 'a.yaml': 'a', 'run.sh': '#!/bin/sh\n' });
  await using first = await tree(files);
  const before = process.umask(0o077);
  try {
    await using second = await tree(Object.fromEntries(Object.entries(files).toReversed()));
    await utimes(second.at('addons/a/1.0/z.yaml'), 1, 1);
    await chmod(second.at('addons/a/1.0/a.yaml'), 0o600);
    const [left] = await buildAll({ root: first.path, registry: registry.host });
    const [right] = await buildAll({ root: second.path, registry: registry.host, jobs: 1 });
    assert.ok((await readFile(left?.path ?? '')).equals(await readFile(right?.path ?? '')));
  } finally {
    process.umask(before);
  }
});

test('blobs that two add-ons of a run share come over the wire once', async () => {
  await using registry = await startRegistry(images);
  const files = { ...addon('a', both), ...addon('b', both), ...addon('c', both) };
  await using box = await tree(files);
  const built = await buildAll({ root: box.path, registry: registry.host, jobs: 3 });
  assert.is(built.length, 3);
  assert.is(registry.log.filter(({ path }) => path.endsWith(base.digest)).length, 1);
});

test('a connection that breaks in the middle of a layer is gone on with where it broke', async () => {
  await using registry = await startRegistry(images, {
    faults: [resetsAtHalf({ path: new RegExp(base.digest), times: 2 })],
  });
  await using box = await tree(addon('a', both));
  await buildAll({ root: box.path, registry: registry.host });
  const ranges = registry.log.filter(({ path }) => path.endsWith(base.digest)).map(({ headers }) => headers['range']);
  assert.is(ranges.length, 3);
  assert.ok(
    ranges.slice(1).every((range) => /^bytes=[1-9]\d+-$/.test(String(range))),
    ranges.join(' '),
  );
});

test('a registry that fails in the middle leaves what the next run goes on with', async () => {
  await using box = await tree(addon('a', both));
  {
    await using registry = await startRegistry(images, { faults: [resetsAtHalf({ path: new RegExp(base.digest) })] });
    await assert.rejectsWith(buildAll({ root: box.path, registry: registry.host }), 'FETCH_FAILED', /^a-1\.0: /);
  }
  assert.equal(await readdir(box.at('out')), ['.a-1.0.tar.gz.partial']);
  await using registry = await startRegistry(images);
  await buildAll({ root: box.path, registry: registry.host });
  const [asked] = registry.log.filter(({ path }) => path.endsWith(base.digest));
  assert.match(String(asked?.headers['range']), /^bytes=[1-9]\d+-$/);
  assert.equal(await readdir(box.at('out')), ['a-1.0.tar.gz']);
});

test('a layer of other bytes is a digest mismatch, and nothing is left', async () => {
  await using registry = await startRegistry(images, { faults: [sendsOtherBytes({ path: new RegExp(base.digest) })] });
  await using box = await tree(addon('a', both));
  const failed = buildAll({ root: box.path, registry: registry.host });
  await assert.rejectsWith(failed, 'DIGEST_MISMATCH', /got sha256:.* \(alternative source: .*images\.example/);
  assert.equal(await readdir(box.at('out')), []);
});

for (const [what, reason, left] of [
  ['cancelled', new CurlewError('CANCELLED', 'cancelled'), []],
  ['stopped by the failure of another add-on', new CurlewError('NOT_FOUND', 'not here'), ['.a-1.0.tar.gz.partial']],
] as const) {
  test(`a build that is ${what} leaves ${left.length === 0 ? 'nothing' : 'what the next run goes on with'}`, async () => {
    const stop = new AbortController();
    await using registry = await startRegistry(images, {
      faults: [
        (asked, regular) => {
          if (!asked.path.endsWith(base.digest)) return undefined;
          setImmediate(() => stop.abort(reason));
          return { ...regular, sending: 'never' };
        },
      ],
    });
    await using box = await tree(addon('a', both));
    const stopped = buildAll({ root: box.path, registry: registry.host, signal: stop.signal });
    await assert.rejectsWith(stopped, reason.code);
    assert.equal(await readdir(box.at('out')), left);
    assert.equal(await readdir(box.at('cache/unfinished')), []);
  });
}

test('an archive of an image line is in the package once, as the image', async () => {
  const layerPath = 'layer.tar';
  const image = makeImage([makeLayer({ a: 'a' }, 'docker', 'none')], 'docker');
  const Config = `${hexOf(image.config.digest)}.json`;
  const saved = tarOf([
    { path: layerPath, data: image.layers[0]?.data ?? '' },
    { path: Config, data: image.config.data },
    { path: 'manifest.json', data: JSON.stringify([{ Config, RepoTags: ['team/app:1'], Layers: [layerPath] }]) },
  ]);
  await using box = await tree(addon('a', 'image app ./app.tar\n', { 'app.tar': saved, 'other.tar': saved }));
  const [built] = await buildAll({ root: box.path });
  const names = await listing(built?.path ?? '');
  assert.equal(
    names.filter((name) => name.endsWith('.tar')),
    ['addons/a/1.0/other.tar'],
  );
  assert.ok(names.some((name) => name.startsWith('addons/a/1.0/images/blobs/')));
  const [again] = await buildAll({ root: box.path });
  assert.is(again?.outcome, 'unchanged');
  await writeFile(box.at('addons/a/1.0/Manifest'), 'image app ./app.tar quay.io/org/named:2\n');
  const [named] = await buildAll({ root: box.path });
  assert.is(named?.outcome, 'built');
  assert.equal(
    named?.addon.images.map(({ reference }) => reference),
    ['quay.io/org/named:2'],
  );
});

test("images in kURL's form are archives of their own", async () => {
  await using registry = await startRegistry(images);
  await using box = await tree(addon('a', both));
  const [built] = await buildAll({ root: box.path, registry: registry.host, imageFormat: 'docker-archive' });
  assert.is(built?.addon.imageFormat, 'docker-archive');
  const names = await listing(built?.path ?? '');
  assert.ok(names.includes('addons/a/1.0/images/one.tar.gz'));
  await execa('tar', ['-xzf', built?.path ?? '', '-C', box.path]);
  const { stdout } = await execa('tar', ['-tzf', box.at('addons/a/1.0/images/one.tar.gz')]);
  assert.match(stdout, /^manifest\.json$/m);
});

test('an image that only the engine has is taken from there', async () => {
  await using registry = await startRegistry({});
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  const layer = one.layers[0];
  if (layer === undefined) throw new Error('no layer');
  const image = {
    reference: 'images.example/team/one:1',
    names: ['images.example/team/one:1'],
    digest: one.manifest.digest,
    mediaType: one.manifestType,
    manifest: one.manifest.data,
    config: {
      descriptor: { mediaType: 'x', digest: one.config.digest, size: one.config.data.byteLength },
      data: one.config.data,
    },
    layers: one.layers.map(({ digest, data, mediaType }) => ({ digest, mediaType, size: data.byteLength })),
    platform: 'linux/amd64',
    resolved: one.manifest.digest,
  };
  const engine = {
    identify: async () => one.manifest.digest,
    export: async () => ({
      ...image,
      fetch: async (
        { digest }: { readonly digest: string },
        { from, write }: { readonly from: number; readonly write: (chunk: Uint8Array) => Promise<void> | undefined },
      ) => {
        const blob = one.layers.find((found) => found.digest === digest);
        await write(Buffer.from(blob?.data ?? '').subarray(from));
        return undefined;
      },
    }),
  };
  const [built] = await buildAll({ root: box.path, registry: registry.host, engine });
  assert.is(built?.addon.images[0]?.digest, one.manifest.digest);
});

test('a file of the Manifest that leads outside the repository by a link is refused, one that stays in it is taken', async () => {
  await using box = await tree({ 'shared/data': 'ours', ...addon('a', 'asset x ../../../shared/link\n') });
  await using outside = await tree({ secret: 'mine' });
  await symlink('data', box.at('shared/link'));
  const [built] = await buildAll({ root: box.path });
  assert.is(built?.outcome, 'built');
  await rm(box.at('shared/link'));
  await symlink(outside.at('secret'), box.at('shared/link'));
  const message = /^a-1\.0: cannot read asset x: \S+shared\/link leads outside the repository through a symbolic link$/;
  await assert.rejectsWith(buildAll({ root: box.path }), 'FILE_UNUSABLE', message);
  await writeFile(box.at('addons/a/1.0/Manifest'), 'image x ../../../shared/link/i.tar\n');
  await writeFile(outside.at('i.tar'), '');
  await rm(box.at('shared/link'));
  await symlink(outside.path, box.at('shared/link'));
  await assert.rejectsWith(
    buildAll({ root: box.path }),
    'FILE_UNUSABLE',
    /^a-1\.0: image x: .* leads outside the repository/,
  );
});

test('a file outside the repository is refused, also by its own path and for an unchanged package, unless that is allowed', async () => {
  await using outside = await tree({ secret: 'mine', 'i.tar': 'an archive' });
  const up = (path: string): string => `../../../..${path}`;
  for (const source of [
    outside.at('secret'),
    `../../../../../../../../../../..${outside.at('secret')}`,
    up('/missing'),
  ]) {
    await using box = await tree(addon('a', `asset x ${source}\n`));
    await assert.rejectsWith(
      buildAll({ root: box.path }),
      'FILE_UNUSABLE',
      /^a-1\.0: cannot fetch asset x: \S+ is outside the repository \S+$/,
    );
    if (source.endsWith('missing')) continue;
    const [allowed] = await buildAll({ root: box.path, outsideFiles: true });
    assert.is(allowed?.outcome, 'built');
    await assert.rejectsWith(
      buildAll({ root: box.path }),
      'FILE_UNUSABLE',
      /read asset x: .* is outside the repository/,
    );
  }
  await using box = await tree(addon('a', `image x ${outside.at('i.tar')}\n`));
  await assert.rejectsWith(
    buildAll({ root: box.path }),
    'FILE_UNUSABLE',
    /^a-1\.0: image x: .* is outside the repository/,
  );
});

test('a finished package that others can write to is made again', async () => {
  await using box = await tree(addon('a', ''));
  const [first] = await buildAll({ root: box.path });
  const path = first?.path ?? '';
  assert.is((await buildAll({ root: box.path }))[0]?.outcome, 'unchanged');
  await chmod(path, 0o666);
  const [again] = await buildAll({ root: box.path });
  assert.is(again?.because, 'the existing package is not trusted: other users can write to it (mode 666)');
  assert.is((await stat(path)).mode & 0o777, 0o644);
});

test('a cache whose folders are links is refused, and nothing that they lead to is removed', async () => {
  await using web = await serveFiles({ tool: 'x' });
  await using box = await tree({ 'elsewhere/my-folder/file': '', ...addon('a', `asset tool ${web.url}/tool\n`) });
  const old = new Date(Date.now() - 40 * 86_400_000);
  await utimes(box.at('elsewhere/my-folder'), old, old);
  await mkdir(box.at('cache'));
  for (const name of ['unfinished', 'assets']) {
    await symlink(box.at('elsewhere'), box.at('cache', name));
    const message = new RegExp(
      `use \\S+/cache/${name} for unfinished downloads: it is not a private folder of this user`,
    );
    await assert.rejectsWith(buildAll({ root: box.path }), 'FILE_UNUSABLE', message);
    await pruneCache(box.at('cache'), Date.now());
    assert.equal(await readdir(box.at('elsewhere')), ['my-folder']);
    await rm(box.at('cache', name));
  }
});

test.run();
