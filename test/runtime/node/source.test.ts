import { cp, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { execa } from 'execa';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { formatAddonJson } from '../../../src/core/package.ts';
import { renameIntoPlace, stagePackage } from '../../../src/runtime/node/put-in-place.ts';
import { readRecords } from '../../../src/runtime/node/records.ts';
import type { SourcePackage } from '../../../src/runtime/node/source.ts';
import { folderPackages } from '../../../src/runtime/node/source-folder.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { bundleOf, type TestAddon } from '../../support/node-bundles.ts';
import { packagesOf, run, trace, tracer } from '../../support/node-install.ts';
import { archiveOf, packageOf } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('package sources of a run');

test('a flipped byte in a payload stops the run before anything is in place', async () => {
  await using box = await tree();
  const bytes = bundleOf([tracer('aaa', `# ${'x'.repeat(200)}`)]);
  const source = memorySource('b', bytes);
  const index = await readIndex(source, { signal: never });
  const victim = index.entries.find(({ path }) => path.endsWith('install.sh'));
  bytes[(victim?.offset ?? 0) + 30] = (bytes[(victim?.offset ?? 0) + 30] ?? 0) ^ 1;
  await assert.rejectsWith(run(box, await packagesOf(bytes)), 'DIGEST_MISMATCH', /install\.sh/);
  assert.equal(await readdir(box.at('node/addons')), []);
  assert.equal((await readRecords(box.at('node'))).extracted, []);
});

test('a package whose addon.json is for other files, or another version, is refused', async () => {
  await using box = await tree();
  const { addon } = packageOf('aaa', '1.0.0', [{ path: 'install.sh', data: 'aaa() { :; }' }]);
  const json = { path: 'addons/aaa/1.0.0/addon.json', data: formatAddonJson(addon) };
  const other = archiveOf([json, { path: 'addons/aaa/1.0.0/install.sh', data: 'evil' }]).bytes;
  await assert.rejectsWith(packagesOf(other), 'DIGEST_MISMATCH', /files of aaa-1\.0\.0/);
  const moved = archiveOf([{ ...json, path: 'addons/aaa/2.0.0/addon.json' }]).bytes;
  await assert.rejectsWith(packagesOf(moved), 'PACKAGE_INVALID', /describes aaa-1\.0\.0/);
  assert.equal(await readdir(box.path), []);
});

/** A bundle unpacked by tar. */
async function unpacked(box: Tree, addons: readonly TestAddon[]): Promise<string> {
  await writeFile(box.at('bundle.tar.gz'), bundleOf(addons));
  await mkdir(box.at('unpacked'), { recursive: true });
  await execa('tar', ['xzf', box.at('bundle.tar.gz'), '-C', box.at('unpacked')]);
  return box.at('unpacked');
}

test('an unpacked bundle is verified and moved; the next run finds it in place', async () => {
  await using box = await tree();
  const folder = await unpacked(box, [tracer('aaa'), tracer('bbb')]);
  const first = await folderPackages(folder, { directory: box.at('node'), signal: never });
  await run(box, first.packages);
  assert.equal(await readdir(box.at('unpacked/addons/aaa')), []);
  assert.match((await first.readRoot('installer.yaml', 10_000)) ?? '', 'kind: Installer');
  const second = await folderPackages(folder, { directory: box.at('node'), signal: never });
  assert.equal(
    (await run(box, second.packages)).addons.map(({ outcome }) => outcome),
    ['already applied', 'already applied'],
  );
});

test('a trial leaves the unpacked bundle as it is, whatever its hooks write, and a run after it takes the files over', async () => {
  await using box = await tree();
  await using other = await tree();
  const folder = await unpacked(box, [tracer('aaa')]);
  const trial = await folderPackages(folder, { directory: other.at('node'), stays: true, signal: never });
  assert.equal(
    trial.packages.map(({ movedFrom }) => movedFrom),
    [undefined],
  );
  await run(other, trial.packages);
  await writeFile(other.at('node/addons/aaa/1.0.0/install.sh'), 'changed by a hook');
  const real = await folderPackages(folder, { directory: box.at('node'), signal: never });
  assert.equal(
    (await run(box, real.packages)).addons.map(({ outcome }) => outcome),
    ['installed'],
  );
  assert.equal(await readdir(box.at('unpacked/addons/aaa')), []);
});

test('a folder in which unpacking ended early is said to be that; any other is not', async () => {
  await using box = await tree({
    'cut/install.sh': '#!/bin/sh\n',
    'cut/installer.yaml': 'kind: Installer\n',
    'other/a': '',
  });
  const open = async (name: string): Promise<unknown> =>
    folderPackages(box.at(name), { directory: box.at('node'), signal: never });
  const { hint } = await assert.rejectsWith(
    open('cut'),
    'NOT_FOUND',
    /cut: the bundle was not unpacked to its end, or files were removed: stargz\.index\.json is missing$/,
  );
  assert.is(hint, 'unpack the bundle again into an empty folder, and check that tar reports no error');
  await assert.rejectsWith(open('other'), 'NOT_FOUND', /other: it does not contain stargz\.index\.json$/);
});

function only<Item>(items: readonly Item[]): Item {
  const [item, ...more] = items;
  if (item === undefined || more.length > 0) throw new Error(`${items.length} of them`);
  return item;
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

test('single files are read and verified: from a bundle, an unpacked one, and where a run has moved them', async () => {
  await using box = await tree();
  const folder = await unpacked(box, [tracer('aaa')]);
  const open = async (): Promise<SourcePackage> =>
    only((await folderPackages(folder, { directory: box.at('node'), signal: never })).packages);
  const packed = only(await packagesOf(bundleOf([tracer('aaa')])));
  const first = await open();
  const text = await textOf(packed.read('install.sh', { signal: never }));
  assert.match(text, 'aaa_pre_init');
  assert.is(await textOf(first.read('install.sh', { signal: never })), text);
  for (const one of [packed, first]) {
    assert.throwsWith(
      () => one.read('none', { signal: never }),
      'PACKAGE_INVALID',
      /addons\/aaa\/1\.0\.0\/none is missing/,
    );
  }
  await run(box, [first]);
  const moved = await open();
  assert.is(await textOf(moved.read('install.sh', { signal: never })), text);
  await writeFile(box.at('node/addons/aaa/1.0.0/install.sh'), 'changed');
  await assert.rejectsWith(textOf(moved.read('install.sh', { signal: never })), 'DIGEST_MISMATCH');
  await rm(box.at('node/addons/aaa/1.0.0/install.sh'));
  await assert.rejectsWith(textOf(moved.read('install.sh', { signal: never })), 'DIGEST_MISMATCH', /not the file/);
});

test('a run that dies while it takes an unpacked bundle over leaves all that the next one needs', async () => {
  await using box = await tree();
  const folder = await unpacked(box, [tracer('aaa'), tracer('bbb')]);
  const directory = box.at('node');
  await mkdir(directory);
  const sources = async (): Promise<readonly SourcePackage[]> =>
    (await folderPackages(folder, { directory, signal: never })).packages;
  const [staged, placed] = await sources();
  if (staged === undefined || placed === undefined) throw new Error('two packages');
  const run1 = { directory, run: '20260101T000000Z-0000' };
  // One died before the rename, the other one before the record.
  await stagePackage(staged, { ...run1, signal: never });
  await stagePackage(placed, { ...run1, signal: never });
  await renameIntoPlace(placed.ref, { ...run1, keep: false });
  const { addons } = await run(box, await sources());
  assert.equal(
    addons.map(({ name, outcome }) => `${name} ${outcome}`),
    ['aaa installed', 'bbb installed'],
  );
  assert.equal(await readdir(box.at('unpacked/addons/aaa')), []);
});

test('a package of many files is verified file by file, each with its mode, and one that differs leaves the bundle as it was', async () => {
  await using box = await tree();
  const names = Array.from({ length: 40 }, (_, at) => `data/${at % 5}/${at}.yaml`);
  // tar makes one file with several names of equal bytes.
  const files = Object.fromEntries(names.map((name, at) => [name, at % 4 === 0 ? '#!/bin/sh\n' : `at: ${at % 30}\n`]));
  const many = { ...tracer('aaa'), files: { ...tracer('aaa').files, ...files } };
  const folder = await unpacked(box, [many]);
  const last = `${folder}/addons/aaa/1.0.0/${names.at(-1) ?? ''}`;
  const text = await readFile(last);
  const sources = async (): Promise<readonly SourcePackage[]> =>
    (await folderPackages(folder, { directory: box.at('node'), signal: never })).packages;
  await writeFile(last, 'at: 1000\n');
  await assert.rejectsWith(run(box, await sources()), 'DIGEST_MISMATCH', /39\.yaml: not the file/);
  assert.equal(await readdir(box.at('node/addons')), []);
  // No more is read of it than it should have.
  await truncate(last, 2 ** 36);
  await assert.rejectsWith(run(box, await sources()), 'DIGEST_MISMATCH', /39\.yaml: not the file/);
  await writeFile(last, text);
  await run(box, await sources());
  for (const [at, name] of names.entries()) {
    const path = box.at('node/addons/aaa/1.0.0', name);
    assert.is(await readFile(path, 'utf8'), files[name], name);
    assert.is((await stat(path)).mode & 0o777, at % 4 === 0 ? 0o755 : 0o644, name);
  }
});

const THEIRS = 'what somebody else has unpacked is theirs no longer when it is in place';
if (process.geteuid?.() === 0) {
  test(THEIRS, async () => {
    await using box = await tree();
    const folder = await unpacked(box, [tracer('aaa')]);
    await execa('chown', ['-R', '65534:65534', folder]);
    const { packages } = await folderPackages(folder, { directory: box.at('node'), signal: never });
    await run(box, packages);
    for (const path of ['.', 'install.sh', 'data', 'data/x.yaml']) {
      assert.is((await stat(box.at('node/addons/aaa/1.0.0', path))).uid, 0, path);
    }
  });
} else {
  test.skip(THEIRS, 'only root can give files away');
}

for (const [title, spoil, code, message] of [
  [
    'a changed file',
    async (folder: string) => writeFile(`${folder}/addons/aaa/1.0.0/data/x.yaml`, 'x: 2\n'),
    'DIGEST_MISMATCH',
    /x\.yaml: not the file/,
  ],
  [
    'a missing file',
    async (folder: string) => rm(`${folder}/addons/aaa/1.0.0/data/x.yaml`),
    'DIGEST_MISMATCH',
    /not the file/,
  ],
  [
    'a file too many',
    async (folder: string) => writeFile(`${folder}/addons/aaa/1.0.0/evil.sh`, ''),
    'PACKAGE_INVALID',
    /evil\.sh/,
  ],
  [
    'a link instead of a file',
    async (folder: string) => {
      await cp(`${folder}/addons/aaa/1.0.0/data/x.yaml`, `${folder}/x.yaml`);
      await rm(`${folder}/addons/aaa/1.0.0/data/x.yaml`);
      await execa('ln', ['-s', `${folder}/x.yaml`, `${folder}/addons/aaa/1.0.0/data/x.yaml`]);
    },
    'PACKAGE_INVALID',
    /x\.yaml/,
  ],
] as const) {
  test(`${title} in an unpacked bundle is refused, and nothing is in place`, async () => {
    await using box = await tree();
    const folder = await unpacked(box, [tracer('aaa')]);
    await spoil(folder);
    const { packages } = await folderPackages(folder, { directory: box.at('node'), signal: never });
    await assert.rejectsWith(run(box, packages), code, message);
    assert.equal(await readdir(box.at('node/addons')), []);
    assert.equal(await trace(box), []);
  });
}

test('a folder that is no unpacked bundle is told so', async () => {
  await using box = await tree();
  await assert.rejectsWith(
    folderPackages(box.path, { directory: box.at('node'), signal: never }),
    'NOT_FOUND',
    /stargz/,
  );
});

test.run();
