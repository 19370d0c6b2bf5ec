import { mkdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { reindex, type ReindexOptions, type ReindexResult } from '../../../src/ship/release/reindex.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { madePackage, publishAs, readableRelease } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('release/reindex');

const INDEX = 'store/r1/index.json';

async function released(box: Tree, signal: AbortSignal): Promise<Store> {
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const files = [
    await madePackage(box, 'rook', '1.0.4', 'old'),
    await madePackage(box, 'rook', '1.0.4-14.2.21', 'new'),
    await madePackage(box, 'ekco', '0.28+x', 'e'),
  ];
  await publishAs(store, 'r1', files, signal);
  return store;
}

async function run(store: Store, signal: AbortSignal, options: Partial<ReindexOptions> = {}): Promise<ReindexResult> {
  return reindex(store, { release: undefined, dryRun: false, jobs: 2, signal, ...options });
}

for (const [what, damage] of [
  ['cut off', (text: string) => text.slice(0, 100)],
  ['of another release', (text: string) => text.replace('"r1"', '"r2"')],
  ['empty', () => ''],
] as const) {
  test(`a catalog that is ${what} comes back byte for byte`, async ({ signal }) => {
    await using box = await tree();
    const store = await released(box, signal);
    const before = await readFile(box.at(INDEX), 'utf8');
    await writeFile(box.at(INDEX), damage(before));
    const planned = await run(store, signal, { dryRun: true });
    assert.is(planned.was, 'damaged');
    assert.is(await readFile(box.at(INDEX), 'utf8'), damage(before));

    const result = await run(store, signal);
    assert.equal(result, { ...planned, dryRun: false });
    assert.equal([result.packages, result.lost, result.hashed], [3, [], []]);
    assert.is(result.order, 'supported-versions-gen.json');
    assert.is(await readFile(box.at(INDEX), 'utf8'), before);
    assert.is(await readableRelease(store, signal), 'r1');
    assert.is((await run(store, signal)).was, 'sound');
  });
}

test('the order of versions is restored from the generated file, and descends without it', async ({ signal }) => {
  await using box = await tree();
  const store = await released(box, signal);
  const generated = box.at('store/r1/supported-versions-gen.json');
  await writeFile(
    generated,
    (await readFile(generated, 'utf8')).replace('"1.0.4-14.2.21","1.0.4"', '"1.0.4","1.0.4-14.2.21"'),
  );
  await rm(box.at(INDEX));
  const first = async (): Promise<string | undefined> => {
    const { addons } = JSON.parse(await readFile(box.at(INDEX), 'utf8')) as {
      addons: { name: string; versions: { version: string }[] }[];
    };
    return addons.find(({ name }) => name === 'rook')?.versions[0]?.version;
  };
  assert.is((await run(store, signal)).was, 'missing');
  assert.is(await first(), '1.0.4');
  assert.is((await run(store, signal)).order, 'the catalogue');
  assert.is(await first(), '1.0.4');
  await rm(box.at(INDEX));
  await writeFile(generated, 'x');
  assert.is((await run(store, signal)).order, 'descending');
  assert.is(await first(), '1.0.4-14.2.21');
});

test('what cannot be restored is named: a damaged package, one under another name, one that is gone', async ({
  signal,
}) => {
  await using box = await tree();
  const store = await released(box, signal);
  await truncate(box.at('store/r1/rook-1.0.4.tar.gz'), 5000);
  await rename(box.at('store/r1/ekco-0.28-x.tar.gz'), box.at('store/r1/ekco-1.tar.gz'));
  const result = await run(store, signal);
  assert.is(result.was, 'different');
  assert.is(result.packages, 1);
  assert.equal(
    result.lost.map(({ file }) => file),
    ['ekco-1.tar.gz', 'rook-1.0.4.tar.gz', 'ekco-0.28-x.tar.gz'],
  );
  assert.match(result.lost[0]?.why ?? '', 'it contains ekco-0.28-x.tar.gz');
  assert.is(result.lost[2]?.why, 'it is missing');
  assert.is(await readableRelease(store, signal), 'r1');
});

test('packages without metadata are hashed, and that is said', async ({ signal }) => {
  await using box = await tree();
  const store = await released(box, signal);
  const before = await readFile(box.at(INDEX), 'utf8');
  await rm(box.at('store/.curlew'), { recursive: true });
  await rm(box.at(INDEX));
  const result = await run(store, signal);
  assert.is(result.hashed.length, 3);
  assert.is(await readFile(box.at(INDEX), 'utf8'), before);
});

test('a release without packages, and a store without releases, are named', async ({ signal }) => {
  await using box = await tree({ 'empty/.keep': '' });
  const store = await released(box, signal);
  await assert.rejectsWith(run(store, signal, { release: 'r9' }), 'NOT_FOUND', /r9 has no readable package/);
  await assert.rejectsWith(run(createFolderStore(box.at('empty')), signal), 'NOT_FOUND', /no current release/);
});

test('each package is asked for by small ranges, never read whole', async ({ signal }) => {
  await using box = await tree();
  const store = await released(box, signal);
  await rm(box.at(INDEX));
  let bytes = 0;
  let gets = 0;
  const watched: Store = {
    ...store,
    get: async (key, options) => {
      if (key.endsWith('.tar.gz')) {
        gets += 1;
        bytes += options.range?.length ?? Number.POSITIVE_INFINITY;
      }
      return store.get(key, options);
    },
  };
  await run(watched, signal);
  assert.is(gets, 6);
  assert.ok(Number.isFinite(bytes));
});

test.run();
