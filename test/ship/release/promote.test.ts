import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { promote, sourceRelease, type PromoteOptions, type PromoteResult } from '../../../src/ship/release/promote.ts';
import { currentRelease } from '../../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { cutAtCalls, thrownBy } from '../../support/faulty-store.ts';
import { madePackage, publishAs, readableRelease } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

// soak: cuts at each call
const test = suite('release/promote');

/** Two folder stores; `staging` has a release s1 of three packages. */
async function stores(box: Tree, signal: AbortSignal): Promise<{ readonly staging: Store; readonly dist: Store }> {
  for (const name of ['staging', 'dist']) await mkdir(box.at(name), { recursive: true });
  const [staging, dist] = [createFolderStore(box.at('staging')), createFolderStore(box.at('dist'))];
  const files = [
    await madePackage(box, 'a', '1.0', 'a'),
    await madePackage(box, 'a', '2.0', 'a2'),
    await madePackage(box, 'b', '1', 'b'),
  ];
  await publishAs(staging, 's1', files, signal, { commit: 'abc1234' });
  return { staging, dist };
}

async function promoteTo(
  to: Store,
  from: Store,
  release: string,
  signal: AbortSignal,
  options: Partial<PromoteOptions> = {},
): Promise<PromoteResult> {
  const source = await sourceRelease(from, { release: undefined, signal });
  const defaults = { deep: false, stream: false, dryRun: false, jobs: 2, report: noReport };
  return promote(source, { to, release, ...defaults, signal, ...options });
}

function outcomes({ packages }: PromoteResult): readonly string[] {
  return packages.map(({ outcome }) => outcome);
}

/** The store as one of another server, which cannot copy from folders. */
function elsewhere(store: Store): Store {
  return { ...store, place: { server: 'https://s3.example', base: 'bucket' } };
}

for (const [type, said] of [
  ['step-started', /^canceled; nothing was written$/],
  ['step-done', /^the same command continues the release, and copies no package again;/],
] as const) {
  test(`canceled at the first ${type}, it says what is written`, async ({ signal }) => {
    await using box = await tree();
    const { staging, dist } = await stores(box, signal);
    const stop = new AbortController();
    const report: PromoteOptions['report'] = (event) => {
      if (event.type === type) stop.abort(new CurlewError('CANCELLED', 'canceled'));
    };
    const promoting = promoteTo(dist, staging, 'v1', stop.signal, { jobs: 1, report });
    const { message, hint } = await assert.rejectsWith(promoting, 'CANCELLED');
    assert.match(hint ?? message, said);
  });
}

test('a release becomes one of another store: bytes shared, metadata kept, VERSION without newline, latest copies', async ({
  signal,
}) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);

  const result = await promoteTo(dist, staging, 'v1', signal);

  assert.equal(outcomes(result), ['copied', 'copied', 'copied']);
  assert.is(result.from.release, 's1');
  assert.is(result.previous, undefined);
  assert.is(await readFile(box.at('dist/VERSION'), 'utf8'), 'v1');
  assert.is(await readableRelease(dist, signal), 'v1');
  assert.equal((await readdir(box.at('dist/v1'))).toSorted(), [
    'a-1.0.tar.gz',
    'a-2.0.tar.gz',
    'addons-gen.json',
    'b-1.tar.gz',
    'index.json',
    'supported-versions-gen.json',
  ]);
  const [was, is] = [await staging.head('s1/b-1.tar.gz', { signal }), await dist.head('v1/b-1.tar.gz', { signal })];
  assert.is(was?.metadata['gitsha'], 'abc1234');
  assert.equal(is?.metadata, was?.metadata);
  assert.is((await stat(box.at('dist/v1/b-1.tar.gz'))).ino, (await stat(box.at('staging/s1/b-1.tar.gz'))).ino);
  assert.is((await dist.head('b-1.tar.gz', { signal }))?.metadata['gitsha'], 'abc1234');
  assert.is(await readableRelease(staging, signal), 's1');
});

test('what the builds saw goes with the packages', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const file = { ...(await madePackage(box, 'b', '1', 'b')), inputs: { seen: 1 } };
  await publishAs(staging, 's2', [file], signal, { carry: false });
  await promoteTo(dist, staging, 'v1', signal);
  assert.is(
    await readFile(box.at('dist/v1/inputs.json'), 'utf8'),
    await readFile(box.at('staging/s2/inputs.json'), 'utf8'),
  );
});

test('the same promotion again does nothing, and a later one puts the next release on top', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  await promoteTo(dist, staging, 'v1', signal);
  const again = await promoteTo(dist, staging, 'v1', signal, { deep: true });
  assert.equal(outcomes(again), ['present', 'present', 'present']);
  assert.is(again.latest, 0);

  await publishAs(staging, 's2', [await madePackage(box, 'b', '1', 'b changed')], signal);
  await assert.rejectsWith(promoteTo(dist, staging, 'v1', signal), 'STORE_CONFLICT', /v1 already exists/);
  const next = await promoteTo(dist, staging, 'v2', signal);
  assert.is(next.previous, 'v1');
  assert.is(next.latest, 1);
  assert.is(await readableRelease(dist, signal), 'v2');
});

test('without another name the release keeps its own; onto itself it cannot go; within a store it can', async ({
  signal,
}) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const source = await sourceRelease(staging, { release: 's1', signal });
  const rest = { deep: false, stream: false, dryRun: false, jobs: 1, report: noReport, signal };
  assert.is((await promote(source, { to: dist, release: undefined, ...rest })).release, 's1');
  await assert.rejectsWith(promote(source, { to: staging, release: undefined, ...rest }), 'USAGE', /itself/);
  assert.is((await promote(source, { to: staging, release: 'v1', ...rest })).release, 'v1');
  assert.is(await readableRelease(staging, signal), 'v1');
  await assert.rejectsWith(sourceRelease(staging, { release: 'v9', signal }), 'NOT_FOUND', /v9/);
});

test('a dry run checks, names what it would copy, and writes nothing', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const planned = await promoteTo(dist, staging, 'v1', signal, { dryRun: true, deep: true });
  assert.equal(outcomes(planned), ['copied', 'copied', 'copied']);
  assert.equal(await readdir(box.at('dist')), []);
});

test('stores that cannot copy from each other need leave to let the bytes pass through here', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const other = elsewhere(dist);
  const error = await assert.rejectsWith(promoteTo(other, staging, 'v1', signal), 'UNSUPPORTED', /cannot copy/);
  assert.match(error.hint ?? '', '--stream');
  assert.equal(await readdir(box.at('dist')), []);
  const result = await promoteTo(other, staging, 'v1', signal, { stream: true });
  assert.equal(outcomes(result), ['streamed', 'streamed', 'streamed']);
  assert.is(await readableRelease(dist, signal), 'v1');
  const { metadata } = (await dist.head('v1/b-1.tar.gz', { signal })) ?? {};
  assert.is(metadata?.['gitsha'], 'abc1234');
});

test('a package that vanished, or has another length, stops the promotion before readers see anything', async ({
  signal,
}) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  await appendFile(box.at('staging/s1/b-1.tar.gz'), 'x');
  await assert.rejectsWith(
    promoteTo(dist, staging, 'v1', signal),
    'DIGEST_MISMATCH',
    /b-1\.tar\.gz does not have the size/,
  );
  await rm(box.at('staging/s1/b-1.tar.gz'));
  await assert.rejectsWith(promoteTo(dist, staging, 'v1', signal), 'NOT_FOUND', /b-1\.tar\.gz/);
  assert.is(await currentRelease(dist, { signal }), undefined);
});

test('bytes that have changed behind unchanged metadata are found by --deep, and nothing of them stays', async ({
  signal,
}) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const key = 's1/b-1.tar.gz';
  const object = await staging.head(key, { signal });
  const bytes = await readFile(box.at('staging', key));
  bytes[100] = (bytes[100] ?? 0) ^ 1;
  await staging.put(key, bytes, { metadata: object?.metadata, signal });
  for (const stream of [false, true]) {
    const to = stream ? elsewhere(dist) : dist;
    await assert.rejectsWith(promoteTo(to, staging, 'v1', signal, { deep: true, stream }), 'DIGEST_MISMATCH');
    assert.is(await dist.head('v1/b-1.tar.gz', { signal }), undefined);
    assert.is(await currentRelease(dist, { signal }), undefined);
  }
  await staging.put(key, bytes, { metadata: { sha256: digestOf(bytes) }, signal });
  await assert.rejectsWith(promoteTo(dist, staging, 'v1', signal), 'DIGEST_MISMATCH', /not have the digest/);
});

test('where stores compute checksums of all bytes, those of a copy and its source are compared', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const summing = (store: Store, sum: string): Store => ({
    ...store,
    head: async (key, options) => {
      const found = await store.head(key, options);
      return found === undefined ? undefined : { ...found, checksum: sum };
    },
  });
  const other = promoteTo(summing(dist, 'crc32:BBBBBB=='), summing(staging, 'crc32:AAAAAA=='), 'v1', signal);
  await assert.rejectsWith(other, 'DIGEST_MISMATCH', /checksum/);
  assert.is(await dist.head('v1/a-1.tar.gz', { signal }), undefined);
  await promoteTo(summing(dist, 'crc64nvme:BBBBBBBBBBB='), summing(staging, 'crc32:AAAAAA=='), 'v1', signal);
  await promoteTo(summing(dist, 'crc32:AAAAAA=='), summing(staging, 'crc32:AAAAAA=='), 'v2', signal);
});

test('packages without metadata are proved by their bytes, and have metadata in their new place', async ({
  signal,
}) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  await rm(box.at('staging/.curlew'), { recursive: true });
  assert.equal(outcomes(await promoteTo(dist, staging, 'v1', signal)), ['copied', 'copied', 'copied']);
  const { metadata } = (await dist.head('v1/b-1.tar.gz', { signal })) ?? {};
  assert.is(metadata?.['sha256'], digestOf(await readFile(box.at('staging/s1/b-1.tar.gz'))));
});

test('another package under a key of the release is never overwritten', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  await dist.put('v1/b-1.tar.gz', Buffer.from('something else'), { signal });
  await assert.rejectsWith(promoteTo(dist, staging, 'v1', signal), 'STORE_CONFLICT', /b-1\.tar\.gz already exists/);
  assert.is(await readFile(box.at('dist/v1/b-1.tar.gz'), 'utf8'), 'something else');
});

test('what lies beside the packages without standing in the catalog is named and left', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  await staging.put('s1/common.tar.gz', Buffer.from('x'), { signal });
  const notes: string[] = [];
  await promoteTo(dist, staging, 'v1', signal, {
    report: (event) => {
      if (event.type === 'note') notes.push(event.text);
    },
  });
  assert.is(notes.length, 1);
  assert.match(notes[0] ?? '', 's1/common.tar.gz: not in the catalog, not promoted');
  assert.is(await dist.head('v1/common.tar.gz', { signal }), undefined);
});

test('a damaged catalog is named, with the command that makes it anew', async ({ signal }) => {
  await using box = await tree();
  const { staging } = await stores(box, signal);
  await writeFile(box.at('staging/s1/index.json'), '{"format":1,"release":"s1","addons":[{}]}');
  const error = await assert.rejectsWith(sourceRelease(staging, { release: undefined, signal }), 'PACKAGE_INVALID');
  assert.match(error.message, 's1/index.json');
  assert.match(error.hint ?? '', `curlew reindex ${box.at('staging')} --release s1`);
});

test('two promotions at once: one wins or both say the same', async ({ signal }) => {
  await using box = await tree();
  const { staging, dist } = await stores(box, signal);
  const both = await Promise.allSettled(
    ['v1', 'v2', 'v1'].map((release) => promoteTo(createFolderStore(box.at('dist')), staging, release, signal)),
  );
  const won = both.flatMap((result) => (result.status === 'fulfilled' ? [result.value.release] : []));
  const current = await readableRelease(dist, signal);
  assert.ok(won.includes(current ?? ''), `${won.join()} ${current}`);
});

for (const when of ['before', 'after'] as const) {
  test(`cut off ${when} any call, readers keep the old release and the next run completes`, async ({ signal }) => {
    await using box = await tree();
    const { staging } = await stores(box, signal);
    const old = [await madePackage(box, 'b', '1', 'old b')];
    await cutAtCalls({ when, least: 15 }, async (breaking) => {
      const root = box.at('cut');
      await mkdir(root);
      const dist = createFolderStore(root);
      await publishAs(dist, 'v0', old, signal);
      const error = await thrownBy(promoteTo(breaking(dist), staging, 'v1', signal, { jobs: 1 }));
      const seen = await readableRelease(dist, signal);
      assert.ok(seen === 'v0' || seen === 'v1');
      await promoteTo(dist, staging, 'v1', signal);
      assert.is(await readableRelease(dist, signal), 'v1');
      const latest = await dist.head('b-1.tar.gz', { signal });
      assert.is(latest?.metadata['sha256'], (await dist.head('v1/b-1.tar.gz', { signal }))?.metadata['sha256']);
      await rm(root, { recursive: true });
      return error;
    });
  });
}

test.run();
