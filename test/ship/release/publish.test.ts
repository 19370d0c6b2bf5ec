import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { openFileSource, readIndex } from '../../../src/formats/archive/read.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import type { Report } from '../../../src/core/events.ts';
import { publishPackages, type PublishOptions, type PublishResult } from '../../../src/ship/release/publish.ts';
import type { PackageFileToPublish } from '../../../src/ship/release/upload.ts';
import { currentRelease, readCatalog } from '../../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { cutAtCalls, thrownBy } from '../../support/faulty-store.ts';
import { madePackage, readableRelease } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

// soak: cuts at each call
const test = suite('release/publish');

const NOW = new Date('2026-11-20T23:30:00-02:00');

function publish(
  store: Store,
  files: readonly PackageFileToPublish[],
  signal: AbortSignal,
  options: Partial<PublishOptions> = {},
): Promise<PublishResult> {
  const defaults = { release: undefined, now: NOW, carry: true, commit: undefined, jobs: 2, report: noReport };
  return publishPackages(files, { store, ...defaults, signal, ...options });
}

function outcomes({ packages }: PublishResult): Readonly<Record<string, string>> {
  return Object.fromEntries(packages.map(({ name, version, outcome }) => [`${name}-${version}`, outcome]));
}

test('a release has packages, catalog, generated files, VERSION and latest copies, where any web server finds them', async ({
  signal,
}) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const files = [
    await madePackage(box, 'ekco', '0.28.14', 'a'),
    await madePackage(box, 'ekco', '0.28.2', 'b'),
    await madePackage(box, 'rook', '1.0+x', 'c'),
  ];

  const result = await publish(store, files, signal, { commit: 'abc123' });

  assert.is(result.release, 'v2026.11.21-0');
  assert.is(result.previous, undefined);
  assert.equal(Object.values(outcomes(result)), ['uploaded', 'uploaded', 'uploaded']);
  assert.is(result.latest, 3);
  assert.is(await readFile(box.at('store/VERSION'), 'utf8'), 'v2026.11.21-0');
  for (const path of ['v2026.11.21-0/ekco-0.28.14.tar.gz', 'rook-1.0-x.tar.gz']) {
    assert.ok((await readFile(box.at('store', path))).byteLength > 9000);
  }
  const supported = JSON.parse(
    await readFile(box.at('store/v2026.11.21-0/supported-versions-gen.json'), 'utf8'),
  ) as unknown;
  assert.equal((supported as { supportedVersions: unknown }).supportedVersions, {
    ekco: ['latest', '0.28.14', '0.28.2'],
    rook: ['latest', '1.0+x'],
  });
  const addons = JSON.parse(await readFile(box.at('store/v2026.11.21-0/addons-gen.json'), 'utf8')) as unknown;
  assert.equal((addons as { addOns: unknown }).addOns, [
    { name: 'ekco', fulfills: [], requires: [], recommends: [] },
    { name: 'rook', fulfills: [], requires: [], recommends: [] },
  ]);
  const { metadata } = (await store.head('ekco-0.28.14.tar.gz', { signal })) ?? {};
  assert.is(metadata?.['digest'], files[0]?.addon.digest);
  assert.is(metadata?.['gitsha'], 'abc123');
  assert.is(await readableRelease(store, signal), 'v2026.11.21-0');
});

test('the next release copies what has not changed, uploads what has, and carries the rest over', async ({
  signal,
}) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const [a, b, c] = [
    await madePackage(box, 'a', '1', 'a'),
    await madePackage(box, 'b', '1', 'b'),
    await madePackage(box, 'c', '1', 'c'),
  ];
  await publish(store, [a, b, c], signal);

  const changed = await madePackage(box, 'b', '1', 'b is different');
  const result = await publish(store, [a, changed], signal);

  assert.is(result.release, 'v2026.11.21-1');
  assert.equal(outcomes(result), { 'a-1': 'copied', 'b-1': 'uploaded', 'c-1': 'copied' });
  assert.is(result.latest, 1);
  const catalog = await readCatalog(store, { release: undefined, signal });
  assert.equal(
    catalog.addons.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.is((await store.head('b-1.tar.gz', { signal }))?.metadata['digest'], changed.addon.digest);
  const notes: string[] = [];
  const report: Report = (event) => {
    if (event.type === 'note') notes.push(event.text);
  };
  const only = await publish(store, [a], signal, { carry: false, report });
  assert.equal(outcomes(only), { 'a-1': 'copied' });
  assert.is(notes.length, 1);
  assert.match(notes[0] ?? '', /^no longer in the release: b, c, which v2026\.11\.21-1 has; /);
});

test('a cancellation after the release became current says so, and the same release again completes the rest', async ({
  signal,
}) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const stop = new AbortController();
  const stopping: Store = {
    ...store,
    put: async (key, ...rest) => {
      const etag = await store.put(key, ...rest);
      if (key === 'VERSION') stop.abort(new CurlewError('CANCELLED', 'canceled'));
      return etag;
    },
  };
  const a = await madePackage(box, 'a', '1', 'a');
  const { hint } = await assert.rejectsWith(publish(stopping, [a], stop.signal, { release: 'r1' }), 'CANCELLED');
  assert.match(hint ?? '', /^r1 is published and current; /);
  assert.is(await readableRelease(store, signal), 'r1');
  assert.is((await publish(store, [a], signal, { release: 'r1' })).latest, 1);
});

test('versions stand as the order file says; carried over, they stay so; without one they descend', async ({
  signal,
}) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const orders = new Map([['a', ['1.9', '2.0']]]);
  const files = [
    await madePackage(box, 'a', '1.9', 'x'),
    await madePackage(box, 'a', '2.0', 'y'),
    await madePackage(box, 'a', '2.1', 'z'),
  ];
  const versions = async (): Promise<readonly string[] | undefined> => {
    const { addons } = await readCatalog(store, { release: undefined, signal });
    return addons.find(({ name }) => name === 'a')?.versions.map(({ version }) => version);
  };
  await publish(store, files, signal, { orders });
  assert.equal(await versions(), ['1.9', '2.0', '2.1']);
  await publish(store, [await madePackage(box, 'b', '1', 'b')], signal);
  assert.equal(await versions(), ['1.9', '2.0', '2.1']);
  await publish(store, [await madePackage(box, 'a', '2.2', 'w')], signal);
  assert.equal(await versions(), ['2.2', '2.1', '2.0', '1.9']);
});

test('the same release again is a no-op; with other content it is refused', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const a = await madePackage(box, 'a', '1', 'a');
  await publish(store, [a], signal, { release: 'r1' });
  const again = await publish(store, [a], signal, { release: 'r1' });
  assert.equal(outcomes(again), { 'a-1': 'present' });
  assert.is(again.latest, 0);

  const other = await madePackage(box, 'a', '1', 'changed');
  await assert.rejectsWith(publish(store, [other], signal, { release: 'r1' }), 'STORE_CONFLICT', /different content/);
  const more = await madePackage(box, 'b', '1', 'b');
  await assert.rejectsWith(
    publish(store, [a, more], signal, { release: 'r1' }),
    'STORE_CONFLICT',
    /r1 was published with different content/,
  );
  assert.is(await readableRelease(store, signal), 'r1');
});

test('an object that lost its metadata is compared by its bytes', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const a = await madePackage(box, 'a', '1', 'a');
  await publish(store, [a], signal, { release: 'r1' });
  await rm(box.at('store/.curlew'), { recursive: true });
  assert.equal(outcomes(await publish(store, [a], signal, { release: 'r1' })), { 'a-1': 'present' });
  assert.is(await readableRelease(store, signal), 'r1');
});

test('a package that vanished from the previous release is uploaded again when its file is given, named when not', async ({
  signal,
}) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const [a, b] = [await madePackage(box, 'a', '1', 'a'), await madePackage(box, 'b', '1', 'b')];
  await publish(store, [a, b], signal, { release: 'r1' });
  await rm(box.at('store/r1/a-1.tar.gz'));
  await assert.rejectsWith(publish(store, [b], signal, { release: 'r2' }), 'NOT_FOUND', /a-1 of r1 is missing/);
  assert.equal(outcomes(await publish(store, [a, b], signal, { release: 'r3' })), {
    'a-1': 'uploaded',
    'b-1': 'copied',
  });
});

test('two versions that would share a key are refused before anything is written', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const store = createFolderStore(box.at('store'));
  const files = [await madePackage(box, 'a', '1+b', 'x'), await madePackage(box, 'a', '1-b', 'y')];
  await assert.rejectsWith(publish(store, files, signal), 'STORE_CONFLICT', /have the same file name a-1-b\.tar\.gz/);
  const twins = [await madePackage(box, 'a', '1-b', 'x'), await madePackage(box, 'a-1', 'b', 'y')];
  await assert.rejectsWith(publish(store, twins, signal), 'STORE_CONFLICT');
  await assert.rejectsWith(publish(store, [], signal), 'USAGE');
  assert.is(await currentRelease(store, { signal }), undefined);
});

for (const release of ['', '..', 'a/b', '.x', 'VERSION', 'x.tar.gz', 'a\nb']) {
  test(`the release string ${JSON.stringify(release)} is refused`, async ({ signal }) => {
    await using box = await tree();
    const a = await madePackage(box, 'a', '1', 'a');
    await assert.rejectsWith(publish(createFolderStore(box.path), [a], signal, { release }), 'USAGE');
  });
}

test('a damaged VERSION or catalog is named', async ({ signal }) => {
  await using box = await tree({ 'store/VERSION': '../../etc' });
  const store = createFolderStore(box.at('store'));
  const a = await madePackage(box, 'a', '1', 'a');
  await assert.rejectsWith(publish(store, [a], signal), 'PACKAGE_INVALID', /VERSION does not contain a release/);
  await writeFile(box.at('store/VERSION'), 'r1');
  await store.put('r1/index.json', Buffer.from('{"format":1,'), { signal });
  await assert.rejectsWith(publish(store, [a], signal), 'PACKAGE_INVALID', /r1\/index\.json: not a valid catalog/);
});

test('two publishers of one release at once: one wins or both say the same', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const a = await madePackage(box, 'a', '1', 'a');
  const other = await madePackage(box, 'a', '1', 'other');
  for (let round = 0; round < 5; round += 1) {
    const release = `r${round}`;
    const results = await Promise.allSettled(
      [a, other, a].map((one) => publish(createFolderStore(box.at('store')), [one], signal, { release })),
    );
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    assert.ok(errors.length < 3);
    assert.ok(
      errors.every((error) => error instanceof CurlewError && error.code === 'STORE_CONFLICT'),
      String(errors[0]),
    );
    assert.is(await readableRelease(createFolderStore(box.at('store')), signal), release);
  }
});

test('two publishers of two releases at once: VERSION is that of one who said so', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const files = [await madePackage(box, 'a', '1', 'a'), await madePackage(box, 'b', '1', 'b')];
  const results = await Promise.allSettled(
    files.map((file, index) => publish(createFolderStore(box.at('store')), [file], signal, { release: `r${index}` })),
  );
  const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.release] : []));
  const current = await readableRelease(createFolderStore(box.at('store')), signal);
  assert.ok(won.includes(current ?? ''), `${won.join()} ${current}`);
});

for (const when of ['before', 'after'] as const) {
  test(`cut off ${when} any call, the old release stays readable and the next run completes`, async ({ signal }) => {
    await using box = await tree();
    const first = [await madePackage(box, 'a', '1', 'a'), await madePackage(box, 'b', '1', 'b')];
    const second = [first[0], await madePackage(box, 'b', '1', 'b2'), await madePackage(box, 'c', '1', 'c')].flatMap(
      (one) => one ?? [],
    );
    await cutAtCalls({ when, least: 15 }, async (breaking) => {
      const root = box.at('store');
      await mkdir(root);
      const store = createFolderStore(root);
      await publish(store, first, signal, { release: 'r1' });
      const error = await thrownBy(publish(breaking(store), second, signal, { release: 'r2', jobs: 1 }));
      const release = await readableRelease(store, signal);
      assert.ok(release === 'r1' || release === 'r2');
      await publish(store, second, signal, { release: 'r2' });
      assert.is(await readableRelease(store, signal), 'r2');
      assert.is((await store.head('b-1.tar.gz', { signal }))?.metadata['digest'], second[1]?.addon.digest);
      assert.is((await store.head('c-1.tar.gz', { signal }))?.metadata['digest'], second[2]?.addon.digest);
      await rm(root, { recursive: true });
      return error;
    });
  });
}

test('a package that was exchanged since it was built is not published', async ({ signal }) => {
  await using box = await tree({ 'store/.keep': '' });
  const [built, other] = [await madePackage(box, 'ekco', '1', 'a'), await madePackage(box, 'rook', '1', 'b')];
  await using source = await openFileSource(built.path);
  const index = await readIndex(source, { signal });
  await copyFile(other.path, built.path);
  const store = createFolderStore(box.at('store'));
  const late = publish(store, [{ ...built, index }], signal);
  await assert.rejectsWith(late, 'DIGEST_MISMATCH', /upload \S+ekco-1\.tar\.gz: the file has changed since the build/);
  assert.is(await store.head('VERSION', { signal }), undefined);
});

test.run();
