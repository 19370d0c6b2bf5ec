import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { digestOf } from '../../../src/core/digest.ts';
import type { PackageImage } from '../../../src/core/package.ts';
import { folderFiles } from '../../../src/runtime/images/folder-files.ts';
import { archiveImages, packageImages, type RequiredImage } from '../../../src/runtime/images/required-images.ts';
import * as assert from '../../support/assert.ts';
import { blobPath, NODE_PLATFORM, writeArchives, writeLayout } from '../../support/image-packages.ts';
import { makeImage, makeIndex, makeLayer, plainTar } from '../../support/images.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('images that packages want');

const signal = new AbortController().signal;
const DIGEST = digestOf('manifest');
const FILES = folderFiles('/nowhere');

function row(reference: string, more: Partial<PackageImage> = {}): PackageImage {
  return { id: 'app', reference, digest: DIGEST, platform: NODE_PLATFORM, ...more };
}

function list(
  images: readonly PackageImage[],
  imageFormat: 'oci' | 'docker-archive' = 'oci',
): readonly RequiredImage[] {
  return packageImages(FILES, { images, imageFormat }, NODE_PLATFORM);
}

test('images are wanted by their tags and by the digests they are pinned to', () => {
  const pinned = `registry.test/app:1@${DIGEST}`;
  const [one, two] = list([row('nginx'), row(pinned), row('docker.io/library/nginx:latest')]);
  assert.equal([one?.reference, one?.names], ['docker.io/library/nginx:latest', ['docker.io/library/nginx:latest']]);
  assert.equal([two?.reference, two?.names], [pinned, ['registry.test/app:1', `registry.test/app@${DIGEST}`]]);
  assert.equal(list([row(pinned)], 'docker-archive')[0]?.names, ['registry.test/app:1'], 'an archive names no digest');
});

test('a hostile list of images is refused before anything is read or run', () => {
  for (const reference of [
    '--force',
    '-',
    '',
    '../../etc',
    'a b',
    'x:1"; name!="',
    'registry.test/a:1\nb',
    'A/B',
    'x'.repeat(600),
  ]) {
    assert.throwsWith(() => list([row(reference)]), 'IMAGE_INVALID', /\/nowhere: image /);
  }
  const other = row('registry.test/app:1', { digest: digestOf('other') });
  assert.throwsWith(() => list([row('registry.test/app:1'), other]), 'IMAGE_INVALID', /two different images are named/);
  assert.throwsWith(
    () => list([row('a', { platform: 'linux/s390x' })]),
    'UNSUPPORTED',
    /is for "linux\/s390x", this machine is/,
  );
  for (const id of ['../../../etc/shadow', '', '.', 'a\u0000b']) {
    assert.throwsWith(() => list([row('a', { id })], 'docker-archive'), 'IMAGE_INVALID', /the id .* of image/);
  }
  assert.throwsWith(() => list([row(`app@${DIGEST}`)], 'docker-archive'), 'IMAGE_INVALID', /cannot name a digest/);
  const many = Array.from({ length: 10_001 }, (_, at) => row(`a:${at}`));
  assert.throwsWith(() => list(many), 'IMAGE_INVALID', /10001 images/);
});

test('manifests and configs that are not what the list promised are refused', async () => {
  await using box = await tree();
  const image = makeImage([makeLayer({ a: 'a' })]);
  const { folder, wanted } = await writeLayout(box.path, { 'registry.test/app:1': image });
  const form = async (): Promise<unknown> => (await wanted()[0]?.form({ signal }))?.kind;
  assert.is(await form(), 'oci');
  const path = (part: 'manifest' | 'config'): string => join(folder, 'images', blobPath(image[part].digest));
  await writeFile(path('config'), image.manifest.data);
  await assert.rejectsWith(form(), 'DIGEST_MISMATCH', /registry\.test\/app:1: the blob sha256:.* is damaged/);
  await writeFile(path('config'), Buffer.alloc(9 << 20));
  await assert.rejectsWith(form(), 'IMAGE_INVALID', /larger than/);
  await rm(path('manifest'));
  await assert.rejectsWith(form(), 'FILE_UNUSABLE', /ENOENT/);
});

test('an index, and an image of another system, are not taken for the promised one', async () => {
  await using box = await tree();
  const other = makeImage([makeLayer({ a: 'a' })], 'oci', 'test', 'amd64', 'windows');
  const { folder, wanted } = await writeLayout(box.path, { 'registry.test/other:1': other });
  await assert.rejectsWith(
    wanted()[0]?.form({ signal }) ?? Promise.resolve(),
    'IMAGE_INVALID',
    /is for "windows\/amd64"/,
  );
  const { manifest } = makeIndex([{ platform: 'linux/amd64', image: other }]);
  await writeFile(join(folder, 'images', blobPath(manifest.digest)), manifest.data);
  const [index] = packageImages(
    folderFiles(folder),
    { images: [row('registry.test/index:1', { digest: manifest.digest })], imageFormat: 'oci' },
    NODE_PLATFORM,
  );
  await assert.rejectsWith(
    index?.form({ signal }) ?? Promise.resolve(),
    'IMAGE_INVALID',
    /expected a manifest, found an index/,
  );
});

test('an image is what the build took it for, even if its config names no platform or another one', async () => {
  await using box = await tree();
  const layers = [makeLayer({ a: 'a' })];
  const { wanted } = await writeLayout(box.path, {
    'registry.test/none:1': makeImage(layers, 'oci', 'none', '', ''),
    'registry.test/other:1': makeImage(layers, 'oci', 'other', 'arm64'),
    'registry.test/alias:1': makeImage(layers, 'oci', 'alias', 'x86_64', 'Linux'),
  });
  for (const image of wanted()) assert.is((await image.form({ signal })).kind, 'oci');
});

test('an archive is read only as far as its names and config', async () => {
  await using box = await tree();
  const image = makeImage([makeLayer({ a: 'a' })]);
  const { folder, wanted } = await writeArchives(box.path, { 'registry.test/app:1': image });
  const form = await wanted()[0]?.form({ signal });
  assert.is(form?.kind === 'archive' && form.config, image.config.digest);
  const [found] = await archiveImages(folderFiles(folder), 'images/image0.tar.gz', { signal });
  assert.equal(found?.names, ['registry.test/app:1']);
});

test('damaged and hostile archives are refused', async () => {
  const config = Buffer.from('{}');
  const hex = digestOf(config).slice(7);
  const tar = (rows: unknown, data: Uint8Array = config): Buffer =>
    plainTar({ [`${hex}.json`]: data, 'manifest.json': JSON.stringify(rows) });
  const good = [{ Config: `${hex}.json`, RepoTags: ['app:1'], Layers: [] }];
  const manifest = { 'manifest.json': JSON.stringify(good) };
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ['no archive at all', Buffer.from('hello'), /is truncated/],
    ['noise', Buffer.alloc(2048, 'x'), /it is damaged/],
    ['nothing', Buffer.alloc(0), /is truncated/],
    ['no manifest', plainTar({ a: 'b' }), /manifest\.json is missing/],
    ['no JSON', plainTar({ 'manifest.json': '{' }), /not JSON/],
    ['no list', tar({}), /names no image/],
    ['no config', tar([{ ...good[0], Config: '../../etc/passwd' }]), /names no config/],
    [
      'a config that lies about its digest',
      tar(good, Buffer.from('{"a":1}')),
      /the config sha256:.* is missing or damaged/,
    ],
    [
      'a config under another name',
      plainTar({ ...manifest, [`${'0'.repeat(64)}.json`]: config }),
      /the config sha256:.* is missing or damaged/,
    ],
    [
      'two manifests',
      Buffer.concat([plainTar(manifest).subarray(0, -1024), plainTar({ ...manifest, [`${hex}.json`]: config })]),
      /two entries named "manifest\.json"/,
    ],
    ['a name that is an option', tar([{ ...good[0], RepoTags: ['--all'] }]), /the name "--all"/],
    ['cut short', gzipSync(tar(good)).subarray(0, 60), /unexpected end/],
    ['a bomb', gzipSync(plainTar({ big: Buffer.alloc(80 << 20) })), /it unpacks to more than/],
  ];
  for (const [name, data, message] of cases) {
    await using box = await tree({ 'images/x.tar.gz': data });
    await assert.rejectsWith(
      archiveImages(folderFiles(box.path), 'images/x.tar.gz', { signal }),
      'IMAGE_INVALID',
      message,
    );
    assert.ok(true, name);
  }
  await using box = await tree({ 'images/x.tar.gz': gzipSync(tar([{ ...good[0], RepoTags: null }])) });
  assert.equal(
    await archiveImages(folderFiles(box.path), 'images/x.tar.gz', { signal }),
    [],
    'an image without a name',
  );
});

test.run();
