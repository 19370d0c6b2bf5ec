import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { prune, type PruneOptions, type PruneResult } from '../../../src/ship/release/prune.ts';
import { promote, sourceRelease } from '../../../src/ship/release/promote.ts';
import { reindex } from '../../../src/ship/release/reindex.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { collectItems } from '../../support/bytes.ts';
import { noReport } from '../../support/context.ts';
import { cutAtCalls, thrownBy } from '../../support/faulty-store.ts';
import { madePackage, publishAs, readableRelease } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

// soak: cuts at each call
// not fast: starts the command again and again
const test = suite('release/prune');

const DAY = 24 * 60 * 60 * 1000;

/** A store with releases r1 (a-1, b-1), r2 (a-1, c-1), r3 (a-2); r3 is current. */
async function stored(box: Tree, signal: AbortSignal): Promise<Store> {
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const a = await madePackage(box, 'a', '1', 'a');
  await publishAs(store, 'r1', [a, await madePackage(box, 'b', '1', 'b')], signal, { carry: false });
  await publishAs(store, 'r2', [a, await madePackage(box, 'c', '1', 'c')], signal, { carry: false });
  await publishAs(store, 'r3', [await madePackage(box, 'a', '2', 'a2')], signal, { carry: false });
  return store;
}

async function run(store: Store, signal: AbortSignal, options: Partial<PruneOptions> = {}): Promise<PruneResult> {
  const defaults = { keep: undefined, olderThan: undefined, now: new Date(), dryRun: false, jobs: 2 };
  return prune(store, { ...defaults, report: noReport, signal, ...options });
}

async function keysOf(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  return (await collectItems(store.list('', { signal }))).map(({ key }) => key);
}

const names = ({ pruned }: PruneResult): readonly string[] => pruned.map(({ release }) => release);
const staying = ({ kept }: PruneResult): readonly string[] => kept.map(({ release }) => release);

test('all but the newest go, with the unversioned copies that no release is left for', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  await store.put('common.tar.gz', Buffer.from('x'), { signal });
  const before = await keysOf(store, signal);
  const planned = await run(store, signal, { keep: 2, dryRun: true });
  assert.equal(await keysOf(store, signal), before);
  const result = await run(store, signal, { keep: 2 });
  assert.equal({ ...planned, dryRun: false }, result);
  assert.equal(names(result), ['r1']);
  assert.equal(result.latest, ['b-1.tar.gz']);
  assert.equal(result.kept, [
    { release: 'r2', because: 'it is among the 2 newest' },
    { release: 'r3', because: 'it is the current release' },
  ]);
  const keys = await keysOf(store, signal);
  assert.equal(
    before.filter((key) => !keys.includes(key)),
    before.filter((key) => key.startsWith('r1/') || key === 'b-1.tar.gz'),
  );
  assert.is(await readableRelease(store, signal), 'r3');
});

/** Another folder with the same files: later ones first, as a backup may restore them. */
async function copied(box: Tree): Promise<Store> {
  await mkdir(box.at('copy'));
  for (const name of (await readdir(box.at('store')))
    .filter((one) => !one.startsWith('.'))
    .toSorted()
    .toReversed()) {
    await cp(box.at('store', name), box.at('copy', name), { recursive: true });
  }
  return createFolderStore(box.at('copy'));
}

test('a copied store is pruned by the times in its catalogs, which an equal publish and a promotion keep', async ({
  signal,
}) => {
  await using box = await tree();
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  for (const day of [1, 2, 3, 4]) {
    const file = await madePackage(box, 'a', String(day), `a${day}`);
    const now = new Date(Date.now() - (10 - day) * DAY);
    await publishAs(store, `r${day}`, [file], signal, { carry: false, now });
    const text = await readFile(box.at('store', `r${day}/index.json`), 'utf8');
    assert.match(text, `"published":"${now.toISOString()}"`);
    await publishAs(store, `r${day}`, [file], signal, { carry: false });
    assert.is(await readFile(box.at('store', `r${day}/index.json`), 'utf8'), text);
  }
  const copy = await copied(box);
  const later = new Date(Date.now() + 2 * DAY);
  // Each was written a moment ago, after the current one: it may be a promotion that is under way.
  assert.equal(names(await run(copy, signal, { keep: 2, dryRun: true })), []);
  assert.equal(names(await run(copy, signal, { olderThan: 9.5 * DAY, now: later, dryRun: true })), ['r1', 'r2']);
  const result = await run(copy, signal, { keep: 2, now: later });
  assert.equal([names(result), staying(result), result.left], [['r1', 'r2'], ['r3', 'r4'], []]);
  await mkdir(box.at('other'));
  const to = createFolderStore(box.at('other'));
  const options = {
    to,
    release: undefined,
    deep: false,
    stream: false,
    dryRun: false,
    jobs: 2,
    report: noReport,
    signal,
  };
  await promote(await sourceRelease(copy, { release: 'r3', signal }), options);
  assert.is(
    await readFile(box.at('other/r3/index.json'), 'utf8'),
    await readFile(box.at('store/r3/index.json'), 'utf8'),
  );
  const r4 = box.at('copy/r4/index.json');
  const text = await readFile(r4, 'utf8');
  for (const lost of [[], ['supported-versions-gen.json']]) {
    for (const name of ['index.json', ...lost]) await rm(box.at('copy/r4', name));
    await reindex(copy, { release: 'r4', dryRun: false, jobs: 2, signal });
    const own = lost.length === 0 ? text : text.replace(/"published":"[^"]*",/, '');
    assert.is(await readFile(r4, 'utf8'), own);
  }
});

test('without times in catalogs, a release that only the store says is older than a lower one is not removed', async ({
  signal,
}) => {
  await using box = await tree();
  await stored(box, signal);
  for (const release of ['r1', 'r2', 'r3']) {
    const path = box.at('store', release, 'index.json');
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace(/"published":"[^"]*",/, ''));
  }
  await rm(box.at('copy'), { recursive: true, force: true });
  const copy = createFolderStore(box.at('copy'));
  await mkdir(box.at('copy'));
  for (const name of ['r2', 'r1', 'r3', 'VERSION', 'a-1.tar.gz']) {
    await cp(box.at('store', name), box.at('copy', name), { recursive: true });
  }
  const notes: string[] = [];
  const report: PruneOptions['report'] = (event) => {
    if (event.type === 'note') notes.push(event.text);
  };
  for (const dryRun of [true, false]) {
    const { pruned, left } = await run(copy, signal, { keep: 2, dryRun, report });
    assert.equal([pruned, left.map(({ release }) => release)], [[], ['r2']]);
    assert.match(left[0]?.why ?? '', 'by the times in the store it is older than r1');
    assert.match(notes.at(-1) ?? '', 'do not have their time in index.json, so that of the store counts: r1, r2, r3');
  }
  assert.ok((await keysOf(copy, signal)).includes('r2/index.json'));
});

test('with an age as well, only what is beyond both goes', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  const later = new Date(Date.now() + 10 * DAY);
  assert.equal(names(await run(store, signal, { keep: 1, olderThan: DAY, dryRun: true })), []);
  assert.equal(names(await run(store, signal, { keep: 3, olderThan: DAY, now: later, dryRun: true })), []);
  assert.equal(names(await run(store, signal, { olderThan: 20 * DAY, now: later, dryRun: true })), []);
  assert.equal(names(await run(store, signal, { keep: 1, olderThan: DAY, now: later })), ['r1', 'r2']);
  assert.is(await readableRelease(store, signal), 'r3');
});

test('the current release stays however old it is, and so does what is newer', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  await writeFile(box.at('store/VERSION'), 'r2');
  const now = new Date(Date.now() + 1000 * DAY);
  assert.equal(names(await run(store, signal, { keep: 1, olderThan: DAY, now })), ['r1']);
  assert.is(await readableRelease(store, signal), 'r2');
});

test('an unfinished release goes when nobody has written to it for long; other places never go', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  for (const key of ['v2020.01.01-0/a-1.tar.gz', 'external/x-1.tar.gz', 'pr/1-abc-x-1.tar.gz']) {
    await store.put(key, Buffer.from('x'), { signal });
  }
  const later = new Date(Date.now() + 10 * DAY);
  assert.equal(names(await run(store, signal, { keep: 3, olderThan: DAY })), []);
  assert.equal(names(await run(store, signal, { keep: 3, now: later })), []);
  const result = await run(store, signal, { keep: 3, olderThan: DAY, now: later });
  assert.equal(names(result), ['v2020.01.01-0']);
  assert.is(result.pruned[0]?.because, 'it was never finished');
  const keys = await keysOf(store, signal);
  assert.ok(keys.includes('external/x-1.tar.gz') && keys.includes('pr/1-abc-x-1.tar.gz'));
});

test('what cannot be judged stays: no VERSION, a current release without catalog, a damaged catalog', async ({
  signal,
}) => {
  await using box = await tree();
  const store = await stored(box, signal);
  await writeFile(box.at('store/r1/index.json'), '{');
  await publishAs(store, 'r4', [await madePackage(box, 'a', '3', 'a3')], signal, { carry: false });
  const result = await run(store, signal, { keep: 1 });
  assert.equal(names(result), ['r2', 'r3']);
  assert.match(result.left[0]?.why ?? '', /r1\/index\.json: .*curlew reindex/);
  assert.ok((await readdir(box.at('store/r1'))).includes('b-1.tar.gz'));
  await rm(box.at('store/r4/index.json'));
  await assert.rejectsWith(run(store, signal, { keep: 1 }), 'NOT_FOUND', /r4 has no catalog/);
  await store.delete('VERSION', { signal });
  await assert.rejectsWith(run(store, signal, { keep: 1 }), 'NOT_FOUND', /no current release/);
});

test('a release that becomes current while it is being removed stays whole', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  const raced: Store = {
    ...store,
    delete: async (key, options) => {
      if (key === 'r1/index.json') await writeFile(box.at('store/VERSION'), 'r1');
      await store.delete(key, options);
    },
  };
  const result = await run(raced, signal, { keep: 2 });
  assert.equal(names(result), []);
  assert.match(result.left[0]?.why ?? '', 'become the current release');
  assert.is(await readableRelease(store, signal), 'r1');
});

test('releases published meanwhile are whole, with their unversioned copies', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  const again = await madePackage(box, 'b', '1', 'b');
  const [published] = await Promise.all([
    publishAs(createFolderStore(box.at('store')), 'r4', [again], signal),
    run(store, signal, { keep: 1 }),
  ]);
  assert.is(published.release, 'r4');
  assert.is(await readableRelease(store, signal), 'r4');
});

test('copies stay of a release that was half there when the store was listed', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  const again = await madePackage(box, 'b', '1', 'b');
  const racing: Store = {
    ...store,
    list: async function* (prefix, options) {
      const before = await keysOf(store, signal);
      if (prefix === '') await publishAs(createFolderStore(box.at('store')), 'r4', [again], signal);
      for await (const one of store.list(prefix, options))
        if (prefix !== '' || before.includes(one.key) || one.key === 'r4/a-2.tar.gz') yield one;
    },
  };
  await run(racing, signal, { keep: 1 });
  assert.ok((await keysOf(store, signal)).includes('b-1.tar.gz'));
});

test('copies that a publish has written just before they are removed are there again, also after a cut', async ({
  signal,
}) => {
  await using box = await tree();
  for (const isCut of [false, true]) {
    const store = await stored(box, signal);
    const again = await madePackage(box, 'b', '1', 'b');
    let isPublished = false;
    const racing: Store = {
      ...store,
      delete: async (key, options) => {
        if (key === 'b-1.tar.gz') await publishAs(createFolderStore(box.at('store')), 'r4', [again], signal);
        await store.delete(key, options);
        if (key !== 'b-1.tar.gz') return;
        isPublished = true;
        if (isCut) throw new Error('cut');
      },
    };
    const error = await thrownBy(run(racing, signal, { keep: 1, jobs: 1 }));
    assert.equal([isPublished, error instanceof Error], [true, isCut]);
    if (isCut) await run(store, signal, { keep: 1 });
    assert.ok((await keysOf(store, signal)).includes('b-1.tar.gz'));
    assert.is(await readableRelease(store, signal), 'r4');
    await rm(box.at('store'), { recursive: true });
  }
});

for (const when of ['before', 'after'] as const) {
  test(`cut off ${when} any call, the current release is whole and the next run completes`, async ({ signal }) => {
    await using box = await tree();
    let wanted: readonly string[] | undefined;
    await cutAtCalls({ when, least: 15 }, async (breaking) => {
      const store = await stored(box, signal);
      const error = await thrownBy(run(breaking(store), signal, { keep: 1, jobs: 1 }));
      assert.is(await readableRelease(store, signal), 'r3');
      await run(store, signal, { keep: 1 });
      const keys = await keysOf(store, signal);
      wanted ??= keys;
      assert.equal(keys, wanted);
      await rm(box.at('store'), { recursive: true });
      return error;
    });
  });
}

test('the folder of the specs is no release', async ({ signal }) => {
  await using box = await tree();
  const store = await stored(box, signal);
  await store.put('installers/abc.yaml', Buffer.from('spec: {}\n'), { signal });
  const result = await run(store, signal, { keep: 1, olderThan: 1, now: new Date(Date.now() + 9 * DAY) });
  assert.equal([names(result), staying(result)], [['r1', 'r2'], ['r3']]);
  assert.ok((await keysOf(store, signal)).includes('installers/abc.yaml'));
});

test.run();
