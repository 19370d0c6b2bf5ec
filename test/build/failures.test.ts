/** What a failed build says, and that it leaves nothing. */
import { execaSync } from 'execa';
import { rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createImageEngine } from '../../src/build/containers/engine.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { openFileSource, readIndex } from '../../src/formats/archive/read.ts';
import { verifyLayers } from '../../src/steps/archives/verify-layers.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import { answers } from '../support/faults.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('build/failures');

const one = makeImage([makeLayer({ 'bin/one': noise(200_000, 2) })], 'oci', 'one');
const images = { 'team/one:1': one, 'team/two:1': one };
const both = 'image one images.example/team/one:1\nimage two images.example/team/two:1\n';

test('an image that the registry does not have is named with its id', async () => {
  await using registry = await startRegistry(images, { faults: [answers({ status: 404 }, { path: /team\/two/ })] });
  await using box = await tree(addon('a', both));
  const failed = buildAll({ root: box.path, registry: registry.host });
  const { hint } = await assert.rejectsWith(failed, 'NOT_FOUND', /a-1\.0: image two: .*images\.example\/team\/two:1/);
  assert.match(hint ?? '', '--from-engine');
  assert.equal(await readdir(box.at('out')), []);
});

test('an image archive that is not there, or is none, is named once', async () => {
  for (const [files, code, message] of [
    [{}, 'NOT_FOUND', /^a-1\.0: image i: cannot read its archive: \S+i\.tar does not exist$/],
    [{ 'i.tar': 'junk' }, 'IMAGE_INVALID', /^a-1\.0: image i: archive \S+i\.tar: not a tar archive$/],
  ] as const) {
    await using box = await tree(addon('a', 'image i ./i.tar\n', files));
    await assert.rejectsWith(buildAll({ root: box.path }), code, message);
  }
});

const layer = makeLayer({ 'bin/one': noise(200_000, 2) });
const wrong = makeImage([layer, { ...layer, diffId: `sha256:${'2'.repeat(64)}` }]);

for (const imageFormat of ['oci', 'docker-archive'] as const) {
  test(`a layer that no node would unpack is refused by a build and by verify: ${imageFormat}`, async ({ signal }) => {
    await using registry = await startRegistry({ 'team/one:1': wrong });
    await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
    const given = { root: box.path, registry: registry.host, imageFormat };
    const message =
      /image images\.example\/team\/one:1: layer 2 of 2: it unpacks to sha256:[0-9a-f]{64}, but the config/;
    await assert.rejectsWith(buildAll(given), 'IMAGE_INVALID', message);
    assert.equal(await readdir(box.at('out')), []);
    const [built] = await buildAll({ ...given, layers: { check: async () => undefined } });
    await using source = await openFileSource(built?.path ?? '');
    const index = await readIndex(source, { signal });
    const events: ProgressEvent[] = [];
    const verified = verifyLayers(source, index, { title: 'a', report: (event) => events.push(event), signal });
    await assert.rejectsWith(verified, 'IMAGE_INVALID', message);
    assert.match(JSON.stringify(events), '"a: layers of 1 image"');
  });
}

test("layers with docker's type for zstd are packed with a warning", async () => {
  const old = makeImage([makeLayer({ a: 'a' }, 'docker', 'zstd')], 'docker');
  await using registry = await startRegistry({ 'team/one:1': old });
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  const events: ProgressEvent[] = [];
  await buildAll({ root: box.path, registry: registry.host, events });
  const warnings = events.flatMap((event) => (event.type === 'note' && event.level === 'warning' ? [event.text] : []));
  assert.is(warnings.length, 1);
  assert.match(warnings[0] ?? '', /image images\.example\/team\/one:1 needs containerd 2\.0/);
});

for (const [what, after] of [
  ['is rewritten', noise(2_000_000, 9)],
  ['grows', noise(2_000_001, 8)],
  ['shrinks', noise(1_999_999, 8)],
] as const) {
  test(`an own file that ${what} during the build is named`, async () => {
    await using box = await tree(addon('a', 'image one images.example/team/one:1\n', { data: noise(2_000_000, 8) }));
    await using registry = await startRegistry(images, {
      faults: [
        () => {
          writeFileSync(box.at('addons/a/1.0/data'), after);
          return undefined;
        },
      ],
    });
    const failed = buildAll({ root: box.path, registry: registry.host });
    await assert.rejectsWith(failed, 'FILE_UNUSABLE', /^a-1\.0: addons\/a\/1\.0\/data changed while/);
    assert.equal(await readdir(box.at('out')), []);
  });
}

for (const [what, data] of [
  ['a small file', 'few\n'],
  ['a file that is deflated', 'many times the same\n'.repeat(100_000)],
  ['a file that is stored', noise(2_000_000, 8)],
] as const) {
  for (const [becomes, message, change] of [
    ['a pipe', /^a-1\.0: .*data changed while/, (path: string) => execaSync('mkfifo', [path])],
    ['nothing', /^a-1\.0: .*data(?: changed while|: ENOENT)/, () => undefined],
  ] as const) {
    test(`${what} that becomes ${becomes} during the build is named, and not waited for`, async () => {
      await using box = await tree(addon('a', 'image one images.example/team/one:1\n', { data }));
      await using registry = await startRegistry(images, {
        faults: [
          () => {
            rmSync(box.at('addons/a/1.0/data'), { force: true });
            change(box.at('addons/a/1.0/data'));
            return undefined;
          },
        ],
      });
      const failed = buildAll({ root: box.path, registry: registry.host });
      await assert.rejectsWith(failed, 'FILE_UNUSABLE', message);
      assert.equal(await readdir(box.at('out')), []);
    });
  }
}

test('where neither a registry nor the engine gives an image, both are told', async () => {
  await using registry = await startRegistry({});
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  const engine = createImageEngine({ DOCKER_HOST: 'unix:///nowhere/docker.sock' });
  const failed = buildAll({ root: box.path, registry: registry.host, engine });
  const error = await assert.rejectsWith(failed, 'FETCH_FAILED', /Docker engine does not respond .*returned 404/);
  assert.match(error.hint ?? '', /DOCKER_HOST/);
});

test('a file in the place of the output folder is named', async () => {
  await using box = await tree({ ...addon('a', ''), out: 'a file' });
  for (const out of ['out', 'out/deeper']) {
    const failed = buildAll({ root: box.path, out });
    await assert.rejectsWith(failed, 'FILE_UNUSABLE', /folder for packages \S+: \S+out is not a folder/);
  }
});

test.run();
